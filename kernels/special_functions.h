// ex2.approx.ftz, rcp.approx.ftz and rsqrt.approx.ftz of NVIDIA's special function unit, on the CPU
// with its bits: a quadratic through each of 64 or 128 segments, in integers. The form is what the
// envytools project found in the first of these units (nvhw/sfu.c). An H200 still has it: its
// results for every significand leave each segment one choice of coefficients, those of the tables.
//
// Subnormal arguments count as zero of their sign, subnormal results become zero; a NaN result is
// 0x7fffffff.
#pragma once
#include <cstdint>

#include "kernels/special_function_tables.h"

namespace numgate::elementary {

namespace detail {

// r^2 / 2^19 for r < 2^17 as the unit's squarer has it: every partial product is cut by itself.
inline std::uint32_t cut_square(std::uint32_t r) {
  std::uint32_t sum = 0;
  for (int i = 0; i < 17; ++i) sum += (r >> i & 1) * (r >> (18 - i));
  return sum >> 1;
}

inline constexpr std::uint32_t kOne = 1u << 23, kFraction = kOne - 1;  // of a significand
inline constexpr std::uint32_t kInfinityBits = 0x7f800000, kNanBits = 0x7fffffff;

// (c0 2^c0_shift + c1 r + c2 square 2^c2_shift + rounding) / 2^shift: a significand.
inline std::uint32_t quadratic(const Quadratic& q, std::uint32_t r, std::uint32_t square,
                               int c0_shift, int c2_shift, int rounding, int shift) {
  const std::int64_t sum = (std::int64_t{q.c0} << c0_shift) + std::int64_t{q.c1} * r +
                           (std::int64_t{q.c2} * square << c2_shift) + rounding;
  return static_cast<std::uint32_t>(sum >> shift);
}

// significand 2^(exponent - 127 - 23) where that is normal, else zero.
inline std::uint32_t normal_or_zero(std::int32_t exponent, std::uint32_t significand) {
  const std::int32_t word =
      exponent * static_cast<std::int32_t>(kOne) + static_cast<std::int32_t>(significand - kOne);
  return word < static_cast<std::int32_t>(kOne) ? 0 : static_cast<std::uint32_t>(word);
}

inline std::uint32_t ex2_bits(std::uint32_t x) {
  const bool negative = x >> 31;
  const std::uint32_t magnitude = x & 0x7fffffff;
  if (magnitude > kInfinityBits) return kNanBits;
  if (magnitude >= 0x43000000) return negative ? 0 : kInfinityBits;  // 128
  // |x| is cut to a multiple of 2^-23. Of a negative x the fraction is complemented, which is 2^-23
  // too little; where it is zero, x is that integer.
  const auto fixed =
      static_cast<std::uint32_t>(__builtin_bit_cast(float, magnitude) * static_cast<float>(kOne));
  std::uint32_t fraction = fixed & kFraction;
  auto whole = static_cast<std::int32_t>(fixed >> 23);
  if (negative) {
    whole = fraction ? -whole - 1 : -whole;
    if (fraction) fraction ^= kFraction;
  }
  const std::uint32_t r = fraction & 0x1ffff;
  return normal_or_zero(whole + 127,
                        quadratic(kEx2[fraction >> 17], r, cut_square(r), 13, 0, 0x77e2, 15));
}

inline std::uint32_t rcp_bits(std::uint32_t x) {
  const std::uint32_t sign = x & 0x80000000, magnitude = x ^ sign;
  if (magnitude > kInfinityBits) return kNanBits;
  if (magnitude == kInfinityBits) return sign;
  if (magnitude < kOne) return sign | kInfinityBits;
  const std::uint32_t fraction = magnitude & kFraction, r = fraction & 0xffff;
  return sign |
         normal_or_zero(253 - static_cast<std::int32_t>(magnitude >> 23),
                        quadratic(kRcp[fraction >> 16], r, cut_square(2 * r), 13, 0, 0x47e7, 15));
}

inline std::uint32_t rsqrt_bits(std::uint32_t x) {
  const std::uint32_t sign = x & 0x80000000, magnitude = x ^ sign;
  if (magnitude > kInfinityBits) return kNanBits;
  if (magnitude < kOne) return sign | kInfinityBits;
  if (sign) return kNanBits;
  if (magnitude == kInfinityBits) return 0;
  const std::int32_t exponent = static_cast<std::int32_t>(magnitude >> 23) - 127;
  const std::uint32_t fraction = (exponent & 1) * kOne + (magnitude & kFraction),
                      r = fraction & 0x1ffff;
  const std::uint32_t significand =  // of powers of 4: exact
      fraction == 0 ? 2 * kOne
                    : quadratic(kRsqrt[fraction >> 17], r, cut_square(r), 14, 2, 0x7fff, 16);
  return normal_or_zero(126 - (exponent >> 1), significand);
}

}  // namespace detail

#if defined(__CUDACC__)
#define NUMGATE_SPECIAL_FUNCTION(name, instruction, model)  \
  __host__ __device__ __forceinline__ float name(float x) { \
    NUMGATE_SPECIAL_RESULT(instruction, model)              \
  }
#else
#define NUMGATE_SPECIAL_FUNCTION(name, instruction, model) \
  inline float name(float x) { NUMGATE_SPECIAL_RESULT(instruction, model) }
#endif
#if defined(__CUDA_ARCH__)
#define NUMGATE_SPECIAL_RESULT(instruction, model) \
  float y;                                         \
  asm(instruction " %0, %1;" : "=f"(y) : "f"(x));  \
  return y;
#else
#define NUMGATE_SPECIAL_RESULT(instruction, model) \
  return __builtin_bit_cast(float, detail::model(__builtin_bit_cast(std::uint32_t, x)));
#endif

// 2^x, x cut to multiples of 2^-23; 1 / x; 1 / sqrt(x).
NUMGATE_SPECIAL_FUNCTION(ex2_approx, "ex2.approx.ftz.f32", ex2_bits)
NUMGATE_SPECIAL_FUNCTION(rcp_approx, "rcp.approx.ftz.f32", rcp_bits)
NUMGATE_SPECIAL_FUNCTION(rsqrt_approx, "rsqrt.approx.ftz.f32", rsqrt_bits)

#undef NUMGATE_SPECIAL_FUNCTION
#undef NUMGATE_SPECIAL_RESULT

}  // namespace numgate::elementary
