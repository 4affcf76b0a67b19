// The classes of inputs do what their names say, and show the rule that each is there for.
#include "kernels/simt/tensor_core_inputs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/formats/formats.h"

namespace numgate::tensor_core {
namespace {

constexpr int kTiles = 7 * kGroup * 16;

const Type kFloats[] = {Type::tf32, Type::bf16, Type::fp16, Type::e4m3, Type::e5m2};

// The value of a raw element, by ldexp.
double value_of(Type type, std::uint32_t raw) {
  if (type == Type::tf32) return std::bit_cast<float>(raw & 0xffffe000u);
  const int fraction_bits = type == Type::bf16   ? 7
                            : type == Type::fp16 ? 10
                            : type == Type::e4m3 ? 3
                                                 : 2;
  const int width = depth(type) == 32 ? 8 : 16, exponent_bits = width - 1 - fraction_bits;
  const int top = (1 << exponent_bits) - 1;
  const int exponent = static_cast<int>(raw >> fraction_bits) & top;
  const int fraction = static_cast<int>(raw) & ((1 << fraction_bits) - 1);
  const double sign = raw >> (width - 1) & 1 ? -1 : 1;
  if (type == Type::e4m3 ? exponent == top && fraction == 7 : exponent == top)
    return fraction ? NAN : sign * INFINITY;
  const int hidden = exponent ? 1 << fraction_bits : 0;
  return sign * std::ldexp(fraction + hidden, std::max(exponent, 1) - top / 2 - fraction_bits);
}

template <class F>
void each_operand(Type type, InputClass of, F f) {
  const std::vector<Tile> tiles = input_tiles(type, kTiles);
  for (int t = 0; t < kTiles; ++t) {
    if (input_class(t) != of) continue;
    const Tile& tile = tiles[static_cast<std::size_t>(t)];
    for (int k = 0; k < depth(type); ++k) {
      for (int i = 0; i < kRows; ++i) f(element(type, tile.a, k, i));
      for (int j = 0; j < kColumns; ++j) f(element(type, tile.b, k, j));
    }
  }
}
template <class F>
void each_output(Type type, InputClass of, F f) {
  const std::vector<Tile> tiles = input_tiles(type, kTiles);
  for (int t = 0; t < kTiles; ++t)
    for (int i = 0; input_class(t) == of && i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j) f(tiles[static_cast<std::size_t>(t)], i, j);
}

// Of the outputs of a class, the share that a changed rule changes.
double share_changed(Type type, Unit unit, InputClass of, void (*change)(Rules&)) {
  const Rules model = hopper_rules(type, unit);
  Rules other = model;
  change(other);
  int all = 0, changed = 0;
  each_output(type, of, [&](const Tile& tile, int i, int j) {
    ++all;
    changed += output(type, model, tile, i, j) != output(type, other, tile, i, j);
  });
  return static_cast<double>(changed) / all;
}

TEST(TensorCoreInputs, AreTheSameEveryTimeAndShareBInAGroup) {
  for (const Type type : {Type::tf32, Type::bf16, Type::e4m3, Type::s8}) {
    const auto tiles = input_tiles(type, kTiles), again = input_tiles(type, kTiles);
    EXPECT_EQ(std::memcmp(tiles.data(), again.data(), tiles.size() * sizeof(Tile)), 0);
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      EXPECT_EQ(std::memcmp(tiles[t].b, tiles[t / 4 * 4].b, sizeof tiles[t].b), 0);
      EXPECT_EQ(input_class(static_cast<int>(t)), input_class(static_cast<int>(t / 4 * 4)));
      const Tile& next = tiles[(t + 1) % tiles.size()];
      EXPECT_NE(std::memcmp(tiles[t].a, next.a, sizeof next.a), 0);
    }
  }
}

TEST(TensorCoreInputs, PlainOperandsAreNormalAndNearOne) {
  for (const Type type : kFloats)
    each_operand(type, InputClass::plain, [&](std::uint32_t raw) {
      const double x = std::abs(value_of(type, raw));
      ASSERT_TRUE(x >= 0.125 && x < 16) << name(type) << " " << raw;
    });
}

TEST(TensorCoreInputs, WideExponentsUseTheWholeRange) {
  for (const Type type : kFloats) {
    double least = INFINITY, largest = 0;
    each_operand(type, InputClass::wide_exponents, [&](std::uint32_t raw) {
      const double x = std::abs(value_of(type, raw));
      least = std::min(least, x), largest = std::max(largest, x);
    });
    // Of the normal numbers, in binades.
    const double range = type == Type::e4m3                         ? 14
                         : type == Type::fp16 || type == Type::e5m2 ? 29
                                                                    : 240;
    EXPECT_GE(std::log2(largest / least), range) << name(type);
  }
}

TEST(TensorCoreInputs, RawBitsHoldWhateverTheFormatHas) {
  for (const Type type : kFloats) {
    int nan = 0, infinite = 0, subnormal = 0, negative = 0;
    const double least = type == Type::fp16 || type == Type::e5m2 ? 0x1p-14
                         : type == Type::e4m3                     ? 0x1p-6
                                                                  : 0x1p-126;
    each_operand(type, InputClass::raw_bits, [&](std::uint32_t raw) {
      const double x = value_of(type, raw);
      nan += std::isnan(x), infinite += std::isinf(x), negative += std::signbit(x);
      subnormal += x != 0 && std::abs(x) < least;
    });
    EXPECT_GT(nan, 0) << name(type);
    EXPECT_GT(subnormal, 0) << name(type);
    EXPECT_GT(negative, 0) << name(type);
    // An infinity among formats of many fraction bits is rare.
    EXPECT_TRUE(type != Type::e5m2 || infinite > 0);
    EXPECT_TRUE(type != Type::e4m3 || infinite == 0);
  }
}

TEST(TensorCoreInputs, SignedZerosAreMostOperandsAndBothSigns) {
  for (const Type type : kFloats) {
    int all = 0, plus = 0, minus = 0, minus_c = 0;
    each_operand(type, InputClass::signed_zeros, [&](std::uint32_t raw) {
      const double x = value_of(type, raw);
      ++all;
      if (x == 0) ++(std::signbit(x) ? minus : plus);
    });
    each_output(type, InputClass::signed_zeros,
                [&](const Tile& tile, int i, int j) { minus_c += tile.c[j][i] == 0x80000000u; });
    EXPECT_GT(plus, all / 4) << name(type);
    EXPECT_GT(minus, all / 4) << name(type);
    EXPECT_GT(minus_c, 0) << name(type);
  }
}

TEST(TensorCoreInputs, TheAddendDominatesOrCancels) {
  for (const Type type : kFloats) {
    int all = 0, dominates = 0, cancels = 0;
    each_output(type, InputClass::dominating_addend, [&](const Tile& tile, int i, int j) {
      const double c = std::bit_cast<float>(tile.c[j][i]);
      double sum = 0;
      for (int k = 0; k < depth(type); ++k)
        sum += std::abs(value_of(type, element(type, tile.a, k, i)) *
                        value_of(type, element(type, tile.b, k, j)));
      const double first =
          value_of(type, element(type, tile.a, 0, i)) * value_of(type, element(type, tile.b, 0, j));
      ++all, dominates += std::abs(c) > sum, cancels += c == -first;
    });
    EXPECT_GT(dominates, all / 2) << name(type);
    EXPECT_GT(cancels, all / 4) << name(type);
  }
}

TEST(TensorCoreInputs, NearTheCutABitMoreOrLessShows) {
  const auto fewer = [](Rules& r) { r.fraction_bits -= 1; };
  const auto more = [](Rules& r) { r.fraction_bits += 1; };
  for (const Type type : kFloats)
    for (const Unit unit : {Unit::mma, Unit::wgmma}) {
      EXPECT_GT(share_changed(type, unit, InputClass::near_cut, fewer), 0.01) << name(type);
      EXPECT_GT(share_changed(type, unit, InputClass::near_cut, more), 0.005) << name(type);
    }
}

TEST(TensorCoreInputs, NearTheFloorAnotherFloorShows) {
  const auto higher = [](Rules& r) { r.exponent_floor = -132; };
  for (const Type type : {Type::tf32, Type::bf16}) {
    EXPECT_GT(share_changed(type, Unit::mma, InputClass::near_floor, higher), 0.005);
    EXPECT_EQ(share_changed(type, Unit::mma, InputClass::plain, higher), 0);
  }
}

TEST(TensorCoreInputs, IntegersReachTheLimitsOfTheirAccumulator) {
  int wrapped = 0;
  each_output(Type::s8, InputClass::near_floor, [&](const Tile& tile, int i, int j) {
    const Rules none = hopper_rules(Type::s8, Unit::mma);
    wrapped += output(Type::s8, none, tile, i, j) != output(Type::s8_satfinite, none, tile, i, j);
  });
  EXPECT_GT(wrapped, 0);
}

}  // namespace
}  // namespace numgate::tensor_core
