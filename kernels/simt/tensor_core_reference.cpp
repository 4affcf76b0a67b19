#include <algorithm>
#include <bit>
#include <cstdlib>

#include "kernels/formats/formats.h"
#include "kernels/simt/tensor_core.h"

namespace numgate::tensor_core {
namespace {

constexpr int kFloor = -133;

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
  Type type;
  int exponent_bits, fraction_bits;
  std::uint32_t (*code)(std::uint32_t raw);  // as the unit reads it
};

std::uint32_t same(std::uint32_t raw) { return raw; }
std::uint32_t cut13(std::uint32_t raw) { return raw >> 13; }
std::uint32_t e4m3_as_fp16(std::uint32_t raw) {
  return formats::fp16_from_float(formats::float_from_e4m3(static_cast<std::uint8_t>(raw)));
}
std::uint32_t e5m2_as_fp16(std::uint32_t raw) { return raw << 8; }

Operand operand(Type type, Unit unit) {
  switch (type) {
    case Type::tf32:
      return {type, 8, 10, cut13};
    case Type::bf16:
      return {type, 8, 7, same};
    case Type::fp16:
      return {type, 5, 10, same};
    case Type::e4m3:
      return unit == Unit::mma ? Operand{type, 5, 10, e4m3_as_fp16} : Operand{type, 4, 3, same};
    default:
      return {type, 5, 10, e5m2_as_fp16};
  }
}

// (-1)^negative significand 2^shift, cut to an integer.
std::int64_t cut(bool negative, std::uint64_t significand, int shift) {
  const std::uint64_t m = shift >= 0    ? significand << shift
                          : -shift > 63 ? 0
                                        : significand >> -shift;
  return negative ? -static_cast<std::int64_t>(m) : static_cast<std::int64_t>(m);
}

// sum 2^lsb as fp32 with `fraction_bits`, toward zero. Overflow is infinite all the same, and zero
// is +0.
std::uint32_t store(std::int64_t sum, int lsb, int fraction_bits) {
  const auto magnitude = static_cast<std::uint64_t>(std::abs(sum));
  if (magnitude == 0) return 0;
  const int exponent = std::max(lsb + static_cast<int>(std::bit_width(magnitude)) - 1, -126);
  const std::uint32_t sign = sum < 0 ? 0x80000000u : 0;
  if (exponent > 127) return sign | 0x7f800000u;
  const auto significand =
      static_cast<std::uint32_t>(cut(false, magnitude, lsb - (exponent - fraction_bits)))
      << (23 - fraction_bits);
  // A subnormal has no leading bit to add to the exponent field.
  const std::uint32_t code = (static_cast<std::uint32_t>(exponent + 126) << 23) + significand;
  return code == 0 ? 0 : sign | code;
}

struct Step {
  int kept;      // F
  int fraction;  // bits of the stored result
};

// One step over the k of `mask`.
std::uint32_t step(const Operand& format, const Step& rule, const Tile& tile, int row, int column,
                   std::uint32_t mask, std::uint32_t addend) {
  const Number c = decode(addend, 8, 23);
  int emax = std::max(kFloor, c.kind == Class::finite && c.significand ? c.exponent : kFloor);
  bool nan = c.kind == Class::nan, plus = c.kind == Class::infinite && !c.negative,
       minus = c.kind == Class::infinite && c.negative;
  Number products[kMaxDepth];
  int count = 0;
  for (int k = 0; k < kMaxDepth; ++k) {
    if (!(mask >> k & 1)) continue;
    const Number a = decode(format.code(element(format.type, tile.a, k, row)), format.exponent_bits,
                            format.fraction_bits);
    const Number b = decode(format.code(element(format.type, tile.b, k, column)),
                            format.exponent_bits, format.fraction_bits);
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
  std::int64_t sum = cut(c.negative, c.significand, c.exponent - 23 - (emax - rule.kept));
  for (int i = 0; i < count; ++i) {
    const Number& p = products[i];
    sum +=
        cut(p.negative, p.significand, p.exponent - 2 * format.fraction_bits - (emax - rule.kept));
  }
  return store(sum, emax - rule.kept, rule.fraction);
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

std::uint32_t result(Type type, Unit unit, const Tile& tile, int row, int column) {
  if (type == Type::s8 || type == Type::s8_satfinite) return integers(type, tile, row, column);
  const Operand format = operand(type, unit);
  const std::uint32_t c = tile.c[column][row];
  const bool fp8 = depth(type) == 32;
  if (!fp8) return step(format, {25, 23}, tile, row, column, (1u << depth(type)) - 1, c);
  if (unit == Unit::wgmma) {
    return step(format, {13, 13}, tile, row, column, 0xffffffffu, c);
  }
  const std::uint32_t low = step(format, {25, 23}, tile, row, column, 0x33333333u, 0);
  const std::uint32_t both = step(format, {25, 23}, tile, row, column, 0xccccccccu, low);
  const float sum = std::bit_cast<float>(c) + std::bit_cast<float>(both);
  return sum != sum ? 0x7fffffffu : std::bit_cast<std::uint32_t>(sum);
}

}  // namespace

void multiply_reference(Type type, Unit unit, Tile& tile) {
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      tile.d[column][row] = result(type, unit, tile, row, column);
    }
  }
}

}  // namespace numgate::tensor_core
