// Bits of doubles, one or eight at a time, and the noise that roundings are drawn from.
#pragma once
#include <cstdint>
#include <cstring>

#include "oracles/scalars/pack.h"

namespace numgate::shadow {

inline constexpr std::int64_t kExponent = 0x7ff0000000000000, kMagnitude = 0x7fffffffffffffff;
// The exponent field of 2^e.
NUMGATE_HOST_DEVICE constexpr std::int64_t field(int e) { return std::int64_t{e + 1023} << 52; }
NUMGATE_HOST_DEVICE constexpr double power(int e) { return __builtin_bit_cast(double, field(e)); }

// What depends on how many doubles V holds: exponents, kept in place in the bits (of a double in
// its upper word, which is all that the device then computes), and conversions.
template <class V>
struct Lanes;
template <>
struct Lanes<double> {
  using Word = std::int32_t;
  using Exponents = Word;
  static constexpr int kShift = 20;
  NUMGATE_INLINE static double splat(double x) { return x; }
  NUMGATE_INLINE static Exponents exponents(double v) {
    return static_cast<std::int32_t>(bits_of(v) >> 32) & 0x7ff00000;
  }
  NUMGATE_INLINE static double powers(Exponents e) { return from_bits(std::int64_t{e} << 32); }
  // Toward zero to an integer, |v| < 2^51.
  NUMGATE_INLINE static double integer_part(double v) {
#if defined(__CUDA_ARCH__)
    const double big = copysign(0x1p52, v);
    return __dadd_rz(v, big) - big;
#else
    return static_cast<double>(static_cast<std::int64_t>(v));
#endif
  }
  // 2^v of an integer v.
  NUMGATE_INLINE static double exp2_integer(double v) {
    return from_bits((static_cast<std::int64_t>(v) + 1023) << 52);
  }
};

#if !defined(__CUDACC__)
template <>
struct Lanes<Pack> {
  using Word = std::int64_t;
  using Exponents = PackBits;
  static constexpr int kShift = 52;
  NUMGATE_INLINE static Pack splat(double x) { return broadcast(x); }
  NUMGATE_INLINE static Exponents exponents(Pack v) { return bits_of(v) & kExponent; }
  NUMGATE_INLINE static Pack powers(Exponents e) { return from_bits(e); }
  NUMGATE_INLINE static Pack integer_part(Pack v) {
    return __builtin_convertvector(__builtin_convertvector(v, PackBits), Pack);
  }
  NUMGATE_INLINE static Pack exp2_integer(Pack v) {
    return from_bits((__builtin_convertvector(v, PackBits) + 1023) << 52);
  }
};

NUMGATE_INLINE Pack load(const double* p) {
  Pack v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
NUMGATE_INLINE void save(double* p, Pack v) { std::memcpy(p, &v, sizeof v); }
#endif

// splitmix64's output function.
NUMGATE_HOST_DEVICE constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

#if !defined(__CUDACC__)
// Eight xorshift64 streams: noise, one step per vector.
class Random {
 public:
  static constexpr double kUnit = 0x1p-64;

  explicit Random(std::uint64_t seed) {
    for (int i = 0; i < kLanes; ++i) {
      seed += 0x9e3779b97f4a7c15u;
      state_[i] = mix(seed) | 1;  // never 0, where xorshift stays
    }
  }
  // Uniform in [-1/2, 1/2) / kUnit: whoever uses it scales anyway.
  NUMGATE_INLINE Pack next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return __builtin_convertvector(reinterpret_cast<PackBits>(state_), Pack);
  }

 private:
  typedef std::uint64_t Words __attribute__((vector_size(64)));
  Words state_;
};
#endif

// One stream of a multiply with carry (MWC64X), the cheapest noise that a device has.
class ScalarRandom {
 public:
  static constexpr double kUnit = 1;

  NUMGATE_HOST_DEVICE explicit ScalarRandom(std::uint64_t seed) : state_(mix(seed) | 1) {
    state_ = (state_ & 0xffffffffu) | (((state_ >> 32) % 0xfffeb81au) << 32);  // carry < multiplier
  }
  // Uniform in (-1/2, 1/2), in steps of 2^-32.
  NUMGATE_INLINE double next() {
    const auto low = static_cast<std::uint32_t>(state_),
               carry = static_cast<std::uint32_t>(state_ >> 32);
    state_ = std::uint64_t{0xfffeb81bu} * low + carry;
    const std::uint32_t word = low ^ carry;
    // The middle of its step, as fraction of a number in [1, 2).
    return from_bits(std::int64_t{0x3ff0000000080000} | (static_cast<std::int64_t>(word) << 20)) -
           1.5;
  }

 private:
  std::uint64_t state_;
};

}  // namespace numgate::shadow
