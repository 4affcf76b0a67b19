// Conversions computed another way, in double: the value is divided by the format's unit in its
// binade, which is exact, and rounded to an integer by the processor.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/formats/formats.h"

namespace numgate::formats {

enum class Ties { even, away };
enum class Overflow { infinite, clamp };

struct Target {
  int min_exponent, fraction_bits;
  double largest;
  Overflow overflow;
  Ties ties = Ties::even;
};

inline double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

// The value that `x` (no NaN) takes in the format.
inline double rounded(float x, const Target& t) {
  const double v = x;
  if (std::isinf(v)) return t.overflow == Overflow::clamp ? std::copysign(t.largest, v) : v;
  if (v == 0) return v;
  // Subnormals lie below every min_exponent.
  const int exponent =
      std::max(static_cast<int>(__float_as_uint(x) >> 23 & 255) - 127, t.min_exponent);
  const double units = v * power_of_two(t.fraction_bits - exponent);
  const double whole = t.ties == Ties::even ? std::nearbyint(units) : std::round(units);
  const double result = std::copysign(whole * power_of_two(exponent - t.fraction_bits), v);
  if (std::abs(result) <= t.largest) return result;
  return std::copysign(t.overflow == Overflow::clamp ? t.largest : INFINITY, v);
}

inline bool same(float a, double b) { return a == b && std::signbit(a) == std::signbit(b); }

// The name of the first conversion of these bits that is wrong.
inline std::optional<std::string> wrong_conversion(std::uint32_t bits) {
  constexpr double kFp32 = 0x1.fffffep127;
  const float x = __uint_as_float(bits);
  const bool nan = x != x;
  const auto check = [&](float got, bool nan_code, const Target& target) {
    return nan ? nan_code : same(got, rounded(x, target));
  };
  const auto bf16 = bf16_from_float(x), fp16 = fp16_from_float(x);
  const auto e4m3 = e4m3_from_float(x), e5m2 = e5m2_from_float(x);
  const auto s8 = s8_from_float(x);
  if (!check(float_from_bf16(bf16), bf16 == 0x7fff, {-126, 7, 0x1.fep127, Overflow::infinite}))
    return "bf16";
  if (!check(float_from_fp16(fp16), fp16 == 0x7fff, {-14, 10, 65504, Overflow::infinite}))
    return "fp16";
  if (!check(float_from_e4m3(e4m3), e4m3 == 0x7f, {-6, 3, 448, Overflow::clamp})) return "e4m3";
  if (!check(float_from_e5m2(e5m2), e5m2 == 0x7f, {-14, 2, 57344, Overflow::clamp})) return "e5m2";
  if (!check(tf32_rn(x), true, {-126, 10, kFp32, Overflow::infinite})) return "tf32_rn";
  if (!check(tf32_rna(x), true, {-126, 10, kFp32, Overflow::infinite, Ties::away}))
    return "tf32_rna";
  if (__float_as_uint(tf32_cut(x)) != bits - bits % 8192) return "tf32_cut";
  const double whole =
      nan ? 0 : std::min(127.0, std::max(-128.0, std::nearbyint(static_cast<double>(x))));
  if (s8 != whole) return "s8";
  return std::nullopt;
}

}  // namespace numgate::formats
