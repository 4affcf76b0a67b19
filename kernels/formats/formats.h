// Number formats: conversions from and to fp32 with the bits of the hardware's cvt instructions, on
// both backends. Codes are raw bits in the low end of an unsigned integer.
#pragma once
#include <cstdint>

#include "kernels/simt/simt.h"

namespace numgate::formats {

namespace detail {

__host__ __device__ __forceinline__ std::uint32_t bits(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  return __builtin_bit_cast(std::uint32_t, x);
#endif
}
__host__ __device__ __forceinline__ float from_bits(std::uint32_t x) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(x);
#else
  return __builtin_bit_cast(float, x);
#endif
}

__host__ __device__ constexpr std::uint32_t round_shift(std::uint32_t x,
                                                        int shift) {  // to nearest even
  return (x + ((1u << (shift - 1)) - 1) + (x >> shift & 1)) >> shift;
}

// The magnitude of a finite fp32 in a narrower format whose exponent is unbounded above.
template <int exponent_bits, int fraction_bits>
__host__ __device__ constexpr std::uint32_t narrow(std::uint32_t magnitude) {
  constexpr int kCut = 23 - fraction_bits, kBias = 127 - ((1 << (exponent_bits - 1)) - 1);
  const int exponent = static_cast<int>(magnitude >> 23);
  if (exponent > kBias) {
    return round_shift(magnitude - (static_cast<std::uint32_t>(kBias) << 23), kCut);
  }
  const int shift = kCut + kBias + 1 - exponent;  // subnormal in the narrow format
  if (shift > 24 || exponent == 0) return 0;
  return round_shift((magnitude & 0x7fffffu) | 0x800000u, shift);
}

// The fp32 magnitude of a finite code.
template <int exponent_bits, int fraction_bits>
__host__ __device__ constexpr std::uint32_t widen(std::uint32_t code) {
  constexpr std::uint32_t kBias = 127 - ((1 << (exponent_bits - 1)) - 1);
  std::uint32_t exponent = code >> fraction_bits, fraction = code & ((1u << fraction_bits) - 1);
  if (exponent == 0) {
    if (fraction == 0) return 0;
    exponent = 1;
    while (!(fraction >> fraction_bits)) {
      fraction <<= 1;
      --exponent;
    }
    fraction &= (1u << fraction_bits) - 1;
  }
  return ((exponent + kBias) << 23) | fraction << (23 - fraction_bits);
}

}  // namespace detail

// tf32 as the tensor core reads an operand: the low 13 bits are ignored.
__host__ __device__ __forceinline__ float tf32_cut(float x) {
  return detail::from_bits(detail::bits(x) & 0xffffe000u);
}
// cvt.rna.tf32.f32: nearest, ties away. A NaN whose payload is in the low 13 bits becomes infinite.
__host__ __device__ __forceinline__ float tf32_rna(float x) {
  const std::uint32_t v = detail::bits(x);
  return detail::from_bits(((v & 0x7f800000u) == 0x7f800000u ? v : v + 0x1000u) & 0xffffe000u);
}
// cvt.rn.tf32.f32: nearest even.
__host__ __device__ __forceinline__ float tf32_rn(float x) {
  const std::uint32_t v = detail::bits(x);
  if ((v & 0x7fffffffu) > 0x7f800000u) return detail::from_bits(0x7fffffffu);
  return detail::from_bits((v + 0xfffu + (v >> 13 & 1)) & 0xffffe000u);
}

// cvt.rn.bf16.f32: nearest even, overflow to infinity, NaN is 0x7fff.
__host__ __device__ __forceinline__ std::uint16_t bf16_from_float(float x) {
#if defined(__CUDA_ARCH__)
  std::uint16_t code;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(code) : "f"(x));
  return code;
#else
  const std::uint32_t v = detail::bits(x);
  return static_cast<std::uint16_t>(
      (v & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : (v + 0x7fffu + (v >> 16 & 1)) >> 16);
#endif
}
__host__ __device__ __forceinline__ float float_from_bf16(std::uint16_t code) {
  return detail::from_bits(static_cast<std::uint32_t>(code) << 16);
}

// cvt.rn.f16.f32: nearest even, overflow to infinity, NaN is 0x7fff.
__host__ __device__ __forceinline__ std::uint16_t fp16_from_float(float x) {
  const std::uint32_t v = detail::bits(x), magnitude = v & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fffu;
  const std::uint32_t code = detail::narrow<5, 10>(magnitude);
  return static_cast<std::uint16_t>((v >> 16 & 0x8000u) | (code < 0x7c00u ? code : 0x7c00u));
}
__host__ __device__ __forceinline__ float float_from_fp16(std::uint16_t code) {
  const std::uint32_t sign = (code & 0x8000u) << 16, magnitude = code & 0x7fffu;
  if (magnitude > 0x7c00u) return detail::from_bits(0x7fffffffu);
  if (magnitude == 0x7c00u) return detail::from_bits(sign | 0x7f800000u);
  return detail::from_bits(sign | detail::widen<5, 10>(magnitude));
}

// cvt.rn.satfinite.e4m3x2.f32: nearest even, clamps to 448, infinity too; NaN is 0x7f.
__host__ __device__ __forceinline__ std::uint8_t e4m3_from_float(float x) {
  const std::uint32_t v = detail::bits(x), magnitude = v & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  const std::uint32_t code = detail::narrow<4, 3>(magnitude);
  return static_cast<std::uint8_t>((v >> 24 & 0x80u) | (code < 0x7eu ? code : 0x7eu));
}
__host__ __device__ __forceinline__ float float_from_e4m3(std::uint8_t code) {
  const std::uint32_t sign = (code & 0x80u) << 24, magnitude = code & 0x7fu;
  if (magnitude == 0x7fu) return detail::from_bits(0x7fffffffu);
  return detail::from_bits(sign | detail::widen<4, 3>(magnitude));
}

// cvt.rn.satfinite.e5m2x2.f32: nearest even, clamps to 57344, infinity too; NaN is 0x7f.
__host__ __device__ __forceinline__ std::uint8_t e5m2_from_float(float x) {
  const std::uint32_t v = detail::bits(x), magnitude = v & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  const std::uint32_t code = detail::narrow<5, 2>(magnitude);
  return static_cast<std::uint8_t>((v >> 24 & 0x80u) | (code < 0x7bu ? code : 0x7bu));
}
__host__ __device__ __forceinline__ float float_from_e5m2(std::uint8_t code) {
  return float_from_fp16(static_cast<std::uint16_t>(code << 8));
}

// cvt.rni.sat.s8.f32: nearest even integer, clamps, NaN is 0.
__host__ __device__ __forceinline__ std::int8_t s8_from_float(float x) {
  const std::uint32_t v = detail::bits(x), magnitude = v & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0;
  const bool negative = v >> 31;
  if (magnitude >= 0x43000000u) return negative ? -128 : 127;  // 128
  const int shift = 150 - static_cast<int>(magnitude >> 23);   // at least 17
  const auto r = static_cast<int>(
      shift > 24 ? 0 : detail::round_shift((magnitude & 0x7fffffu) | 0x800000u, shift));
  return static_cast<std::int8_t>(negative ? -r : r < 127 ? r : 127);
}
__host__ __device__ __forceinline__ float float_from_s8(std::int8_t code) { return code; }

// Two codes as one register, the first in the low half.
__host__ __device__ __forceinline__ std::uint32_t pack2(std::uint16_t low, std::uint16_t high) {
  return low | static_cast<std::uint32_t>(high) << 16;
}
__host__ __device__ __forceinline__ std::uint32_t bf16_pair(float low, float high) {
#if defined(__CUDA_ARCH__)
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return pack2(bf16_from_float(low), bf16_from_float(high));
#endif
}

}  // namespace numgate::formats
