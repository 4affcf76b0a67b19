#include "kernels/formats/formats.h"

#include <gtest/gtest.h>

#include "kernels/tests/formats_check.h"

namespace numgate::formats {
namespace {

TEST(Formats, NarrowCodesComeBack) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    const auto c = static_cast<std::uint16_t>(code);
    const float bf16 = float_from_bf16(c), fp16 = float_from_fp16(c);
    ASSERT_EQ(bf16_from_float(bf16), bf16 != bf16 ? 0x7fff : c) << code;
    ASSERT_EQ(fp16_from_float(fp16), fp16 != fp16 ? 0x7fff : c) << code;
  }
  for (unsigned code = 0; code < 0x100; ++code) {
    const auto c = static_cast<std::uint8_t>(code);
    const float e4m3 = float_from_e4m3(c), e5m2 = float_from_e5m2(c);
    ASSERT_EQ(e4m3_from_float(e4m3), e4m3 != e4m3 ? 0x7f : c) << code;
    const std::uint8_t largest = (c & 0x80) | 0x7b;
    ASSERT_EQ(e5m2_from_float(e5m2), e5m2 != e5m2 ? 0x7f : std::isinf(e5m2) ? largest : c) << code;
    const auto s8 = static_cast<std::int8_t>(code);
    ASSERT_EQ(s8_from_float(float_from_s8(s8)), s8);
  }
}

TEST(Formats, KnownValues) {
  EXPECT_EQ(float_from_fp16(0x0001), 0x1p-24f);
  EXPECT_EQ(float_from_fp16(0x7bff), 65504.0f);
  EXPECT_EQ(float_from_e4m3(0x01), 0x1p-9f);
  EXPECT_EQ(float_from_e4m3(0x7e), 448.0f);
  EXPECT_EQ(float_from_e5m2(0x01), 0x1p-16f);
  EXPECT_EQ(e4m3_from_float(-INFINITY), 0xfe);
  EXPECT_EQ(s8_from_float(2.5f), 2);
  EXPECT_EQ(pack2(0x1234, 0xabcd), 0xabcd1234u);
  // The payload of this NaN is in the bits that the conversion drops.
  EXPECT_EQ(tf32_rna(__uint_as_float(0x7f800001u)), INFINITY);
}

// Every sign, exponent and leading 12 fraction bits, with the low bits at and beside every rounding
// boundary.
TEST(Formats, RoundAtEveryBoundary) {
  for (std::uint32_t top = 0; top < (1u << 21); ++top) {
    for (const std::uint32_t low : {0x000u, 0x001u, 0x3ffu, 0x400u, 0x401u, 0x7ffu}) {
      const std::uint32_t bits = top << 11 | low;
      const auto wrong = wrong_conversion(bits);
      ASSERT_FALSE(wrong) << *wrong << " of bits " << bits;
    }
  }
}

}  // namespace
}  // namespace numgate::formats
