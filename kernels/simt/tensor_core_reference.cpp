#include <algorithm>
#include <bit>
#include <cstdlib>

#include "kernels/formats/formats.h"
#include "kernels/simt/tensor_core.h"

namespace numgate::tensor_core {
namespace {

enum class Class : std::uint8_t { finite, infinite, nan };

// A finite number is (-1)^negative significand 2^(exponent - fraction bits of its format).
struct Number {
  Class kind;
  bool negative;
  int exponent;
  std::uint64_t significand;
};

// An IEEE format, except that the four-bit exponent is e4m3's: no infinity, and one NaN.
Number decode(std::uint32_t code, int exponent_bits, int fraction_bits) {
  const std::uint32_t top = (1u << exponent_bits) - 1, exponent = code >> fraction_bits & top;
  const std::uint32_t fraction = code & ((1u << fraction_bits) - 1);
  const bool negative = code >> (exponent_bits + fraction_bits) & 1;
  const int bias = static_cast<int>(top / 2);
  const bool special = exponent == top && (exponent_bits != 4 || fraction == 7);
  if (special) return {fraction ? Class::nan : Class::infinite, negative, 0, 0};
  if (exponent == 0) return {Class::finite, negative, 1 - bias, fraction};
  return {Class::finite, negative, static_cast<int>(exponent) - bias,
          fraction | 1u << fraction_bits};
}

struct Operand {
  int exponent_bits, fraction_bits;
  std::uint32_t (*code)(std::uint32_t raw);  // as the unit reads it
};

std::uint32_t same(std::uint32_t raw) { return raw; }
std::uint32_t cut13(std::uint32_t raw) { return raw >> 13; }
std::uint32_t e4m3_as_fp16(std::uint32_t raw) {
  return formats::fp16_from_float(formats::float_from_e4m3(static_cast<std::uint8_t>(raw)));
}
std::uint32_t e5m2_as_fp16(std::uint32_t raw) { return raw << 8; }

Operand operand(Type type, const Rules& rules) {
  switch (type) {
    case Type::tf32:
      return {8, 10, cut13};
    case Type::bf16:
      return {8, 7, same};
    case Type::fp16:
      return {5, 10, same};
    case Type::e4m3:
      return rules.reads_as_fp16 ? Operand{5, 10, e4m3_as_fp16} : Operand{4, 3, same};
    default:  // the same number with and without the conversion
      return {5, 10, e5m2_as_fp16};
  }
}

// (-1)^negative significand 2^shift, cut to an integer.
std::int64_t cut(bool negative, std::uint64_t significand, int shift, Rules::Cut rule) {
  if (significand == 0) return 0;  // its exponent says nothing
  if (shift >= 0) {
    const auto whole = static_cast<std::int64_t>(significand << shift);
    return negative ? -whole : whole;
  }
  const std::uint64_t kept = -shift > 63 ? 0 : significand >> -shift;
  const bool lost = -shift > 63 ? significand != 0 : kept << -shift != significand;
  const auto whole = static_cast<std::int64_t>(kept);
  return negative ? -whole - (lost && rule == Rules::Cut::floor) : whole;
}

// magnitude 2^shift to an integer.
std::uint64_t round(std::uint64_t magnitude, int shift, Rules::Rounding rule) {
  if (shift >= 0) return magnitude << shift;
  if (-shift > 63) return 0;  // magnitudes are below 2^62
  const std::uint64_t kept = magnitude >> -shift, rest = magnitude - (kept << -shift);
  const std::uint64_t half = std::uint64_t{1} << (-shift - 1);
  const bool up = rest > half || (rest == half && kept % 2 == 1);
  return kept + (up && rule == Rules::Rounding::nearest_even);
}

// sum 2^lsb as fp32 with the stored fraction bits. Overflow is infinite even toward zero, and a
// result that becomes zero is +0.
std::uint32_t store(std::int64_t sum, int lsb, const Rules& rules) {
  const auto magnitude = static_cast<std::uint64_t>(std::abs(sum));
  if (magnitude == 0) return 0;
  const int exponent = std::max(lsb + static_cast<int>(std::bit_width(magnitude)) - 1, -126);
  const std::uint32_t sign = sum < 0 ? 0x80000000u : 0;
  if (exponent > 127) return sign | 0x7f800000u;
  const auto significand = static_cast<std::uint32_t>(round(
                               magnitude, lsb - (exponent - rules.stored_bits), rules.rounding))
                           << (23 - rules.stored_bits);
  // A subnormal has no leading bit to add to the exponent field.
  const std::uint32_t code = (static_cast<std::uint32_t>(exponent + 126) << 23) + significand;
  return code == 0 ? 0 : sign | code;
}

// The step that takes the products of k.
int step_of(int depth, const Rules& rules, int k) {
  const bool pairs = rules.order == Rules::Order::pairs_first;
  return (pairs ? k % 4 / 2 * (depth / 2) + k / 4 * 2 + k % 2 : k) / rules.products;
}

std::uint32_t step(Type type, const Rules& rules, const Tile& tile, int row, int column, int index,
                   std::uint32_t addend) {
  const Operand format = operand(type, rules);
  const Number c = decode(addend, 8, 23);
  int emax = rules.exponent_floor;
  if (c.kind == Class::finite && c.significand) emax = std::max(emax, c.exponent);
  bool nan = c.kind == Class::nan, plus = c.kind == Class::infinite && !c.negative,
       minus = c.kind == Class::infinite && c.negative;
  Number products[kMaxDepth];
  int count = 0;
  for (int k = 0; k < depth(type); ++k) {
    if (step_of(depth(type), rules, k) != index) continue;
    const Number a = decode(format.code(element(type, tile.a, k, row)), format.exponent_bits,
                            format.fraction_bits);
    const Number b = decode(format.code(element(type, tile.b, k, column)), format.exponent_bits,
                            format.fraction_bits);
    const bool negative = a.negative != b.negative;
    if (a.kind == Class::nan || b.kind == Class::nan) {
      nan = true;
    } else if (a.kind == Class::infinite || b.kind == Class::infinite) {
      const bool zero = (a.kind == Class::finite && a.significand == 0) ||
                        (b.kind == Class::finite && b.significand == 0);
      (zero ? nan : negative ? minus : plus) = true;
    } else if (a.significand && b.significand) {
      products[count++] = {Class::finite, negative, a.exponent + b.exponent,
                           a.significand * b.significand};
      emax = std::max(emax, a.exponent + b.exponent);
    }
  }
  if (nan || (plus && minus)) return 0x7fffffffu;
  if (plus || minus) return plus ? 0x7f800000u : 0xff800000u;
  const int lsb = emax - rules.fraction_bits;
  std::int64_t sum = cut(c.negative, c.significand, c.exponent - 23 - lsb, rules.cut);
  for (int i = 0; i < count; ++i) {
    const Number& p = products[i];
    sum += cut(p.negative, p.significand, p.exponent - 2 * format.fraction_bits - lsb, rules.cut);
  }
  return store(sum, lsb, rules);
}

std::uint32_t integers(Type type, const Tile& tile, int row, int column) {
  std::int64_t sum = static_cast<std::int32_t>(tile.c[column][row]);
  for (int k = 0; k < 32; ++k) {
    sum += static_cast<std::int8_t>(element(type, tile.a, k, row)) *
           static_cast<std::int8_t>(element(type, tile.b, k, column));
  }
  if (type == Type::s8_satfinite) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
  return static_cast<std::uint32_t>(sum);
}

}  // namespace

Rules hopper_rules(Type type, Unit unit) {
  Rules rules{.fraction_bits = 25,
              .products = depth(type),
              .order = Rules::Order::sequence,
              .addend = Rules::Addend::first,
              .cut = Rules::Cut::toward_zero,
              .rounding = Rules::Rounding::toward_zero,
              .stored_bits = 23,
              .exponent_floor = -133,
              .reads_as_fp16 = false};
  const bool fp8 = type == Type::e4m3 || type == Type::e5m2;
  if (fp8 && unit == Unit::wgmma) {
    rules.fraction_bits = rules.stored_bits = 13;
  } else if (fp8) {
    rules.products = 16;
    rules.order = Rules::Order::pairs_first;
    rules.addend = Rules::Addend::last;
    rules.reads_as_fp16 = true;
  }
  return rules;
}

std::uint32_t output(Type type, const Rules& rules, const Tile& tile, int row, int column) {
  if (is_integer(type)) return integers(type, tile, row, column);
  const std::uint32_t c = tile.c[column][row];
  const bool last = rules.addend == Rules::Addend::last;
  std::uint32_t d = last ? 0 : c;
  for (int i = 0; i * rules.products < depth(type); ++i)
    d = step(type, rules, tile, row, column, i, d);
  if (!last) return d;
  const float sum = std::bit_cast<float>(c) + std::bit_cast<float>(d);
  return sum != sum ? 0x7fffffffu : std::bit_cast<std::uint32_t>(sum);
}

void multiply_reference(Type type, const Rules& rules, Tile& tile) {
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column)
      tile.d[column][row] = output(type, rules, tile, row, column);
}

void multiply_reference(Type type, Unit unit, Tile& tile) {
  multiply_reference(type, hopper_rules(type, unit), tile);
}

}  // namespace numgate::tensor_core
