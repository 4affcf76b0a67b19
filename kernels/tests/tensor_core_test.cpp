#include "kernels/simt/tensor_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "kernels/tests/golden_vectors.h"

namespace numgate::tensor_core {
namespace {

int mismatches(const Tile& tile, const std::uint32_t* d) {
  int count = 0;
  for (int row = 0; row < kRows; ++row) {
    for (int j = 0; j < kColumns; ++j) count += tile.d[j][row] != d[row * 8 + j];
  }
  return count;
}

class TensorCore : public testing::TestWithParam<std::tuple<Type, Unit>> {
 protected:
  Type type = std::get<0>(GetParam());
  Unit unit = std::get<1>(GetParam());
};

// The recorded d, of the instruction that wraps where it is the one that clamps.
std::vector<std::uint32_t> recorded(const GoldenVectors& golden, int tile, Type type) {
  std::vector<std::uint32_t> d(golden.d(tile), golden.d(tile) + 128);
  if (type != Type::s8_satfinite) return d;
  for (int i = 0; i < 128; ++i) {
    std::int64_t sum = static_cast<std::int32_t>(golden.c(tile)[i]);
    for (int k = 0; k < golden.depth; ++k)
      sum += static_cast<std::int8_t>(golden.a(tile)[i / 8 * golden.depth + k]) *
             static_cast<std::int8_t>(golden.b(tile)[k * 8 + i % 8]);
    if (sum > INT32_MAX) d[static_cast<std::size_t>(i)] = 0x7fffffffu;
    if (sum < INT32_MIN) d[static_cast<std::size_t>(i)] = 0x80000000u;
  }
  return d;
}

TEST_P(TensorCore, EqualsTheHardware) {
  const Type instruction = type == Type::s8_satfinite ? Type::s8 : type;
  const auto golden = golden_vectors(
      (unit == Unit::mma ? "mma_" : "wgmma_") + std::string(name(instruction)), type);
  int reference = 0, fast = 0;
  for (int i = 0; i < kGoldenTiles; ++i) {
    const std::vector<std::uint32_t> d = recorded(golden, i, type);
    Tile tile = golden.tile(i);
    multiply_reference(type, unit, tile);
    reference += mismatches(tile, d.data());
    std::fill_n(&tile.d[0][0], 128, 0xdeadbeefu);
    multiply(type, unit, tile);
    fast += mismatches(tile, d.data());
  }
  EXPECT_EQ(reference, 0);
  EXPECT_EQ(fast, 0);
}

// Random raw bits, with the fields drawn so that exponents lie anywhere, lie close together, or are
// special.
class Draw {
 public:
  Draw(Type type, unsigned seed, int style) : type_(type), style_(style), random_(seed) {}

  std::uint32_t operand() {
    switch (type_) {
      case Type::tf32:
        return word(8, 23);
      case Type::bf16:
        return word(8, 7);
      case Type::fp16:
        return word(5, 10);
      case Type::e4m3:
        return word(4, 3);
      case Type::e5m2:
        return word(5, 2);
      default:
        return random_() & 0xffu;
    }
  }
  std::uint32_t operands() {  // one register
    std::uint32_t word = 0;
    const int n = per_register(type_);
    for (int p = 0; p < n; ++p) word |= operand() << p * 32 / n;
    return word;
  }
  std::uint32_t addend() { return type_ >= Type::s8 && style_ != 2 ? random_() : word(8, 23); }

 private:
  std::uint32_t word(int exponent_bits, int fraction_bits) {
    const std::uint32_t top = (1u << exponent_bits) - 1, r = random_();
    std::uint32_t exponent = r & top, fraction = random_() & ((1u << fraction_bits) - 1);
    if (style_ >= 1) exponent = std::min(exponent, top - 1);
    if (style_ == 2) exponent = top / 2 + r % 7 - 3;
    if (style_ == 3) exponent = top / 4 + r % 9 % (top / 4 + 1);  // near the floor
    if (style_ == 4 && r >> 29 == 0) exponent = fraction = 0;
    if (style_ == 5) fraction = r >> 30 ? (1u << fraction_bits) - 1 : 0;
    return (random_() & 1) << (exponent_bits + fraction_bits) | exponent << fraction_bits |
           fraction;
  }

  Type type_;
  int style_;
  std::mt19937 random_;
};

TEST_P(TensorCore, FastModelEqualsReference) {
  for (int style = 0; style < 6; ++style) {
    Draw draw(type, 7u + static_cast<unsigned>(style), style);
    for (int repeat = 0; repeat < 400; ++repeat) {
      Tile tile{};
      for (int q = 0; q < kRegisters; ++q) {
        for (auto& a : tile.a[q]) a = draw.operands();
        for (auto& b : tile.b[q]) b = draw.operands();
      }
      for (auto& column : tile.c) {
        for (auto& c : column) c = draw.addend();
      }
      Tile reference = tile;
      multiply(type, unit, tile);
      multiply_reference(type, unit, reference);
      ASSERT_TRUE(std::equal(&tile.d[0][0], &tile.d[0][0] + 128, &reference.d[0][0]))
          << "style " << style << " tile " << repeat;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TensorCore,
                         testing::Combine(testing::Values(Type::tf32, Type::bf16, Type::fp16,
                                                          Type::e4m3, Type::e5m2, Type::s8,
                                                          Type::s8_satfinite),
                                          testing::Values(Unit::mma, Unit::wgmma)),
                         [](const auto& info) {
                           const Type type = std::get<0>(info.param);
                           return std::string(type == Type::s8_satfinite ? "s8_satfinite"
                                                                         : name(type)) +
                                  (std::get<1>(info.param) == Unit::mma ? "_mma" : "_wgmma");
                         });

// 2^23 - 2^23 - 0.5 - 0.25 - 0.125 in one step: what each generation of tensor cores loses.
TEST(TensorCoreRule, KeepsTwoBitsBeyondFp32) {
  Tile tile{};
  const auto bf16 = [](float x) { return std::bit_cast<std::uint32_t>(x) >> 16; };
  const float terms[] = {-0x1p23f, -0.5f, -0.25f, -0.125f};
  for (int k = 0; k < 4; ++k) {
    tile.a[k / 2][0] |= bf16(terms[k]) << k % 2 * 16;
    tile.b[k / 2][0] |= bf16(1.0f) << k % 2 * 16;
  }
  tile.c[0][0] = std::bit_cast<std::uint32_t>(0x1p23f);
  multiply(Type::bf16, Unit::mma, tile);
  EXPECT_EQ(std::bit_cast<float>(tile.d[0][0]), -0.75f);
}

TEST(TensorCoreRule, IntegersWrapOrClamp) {
  Tile tile{};
  tile.a[0][0] = tile.b[0][0] = 1;
  tile.c[0][0] = 0x7fffffffu;
  multiply(Type::s8, Unit::mma, tile);
  EXPECT_EQ(tile.d[0][0], 0x80000000u);
  multiply(Type::s8_satfinite, Unit::mma, tile);
  EXPECT_EQ(tile.d[0][0], 0x7fffffffu);
}

}  // namespace
}  // namespace numgate::tensor_core
