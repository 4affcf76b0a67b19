// Rounding on eight doubles at a time, and the noise that roundings are drawn from.
#pragma once
#include <cstdint>
#include <cstring>

#include "oracles/scalars/pack.h"

namespace numgate::shadow {

NUMGATE_INLINE Pack load(const double* p) {
  Pack v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
NUMGATE_INLINE void save(double* p, Pack v) { std::memcpy(p, &v, sizeof v); }

inline constexpr std::int64_t kExponent = 0x7ff0000000000000, kMagnitude = 0x7fffffffffffffff;
// The exponent field of 2^e.
constexpr std::int64_t field(int e) { return std::int64_t{e + 1023} << 52; }
constexpr double power(int e) { return __builtin_bit_cast(double, field(e)); }

// The largest power of two <= |v|, 0 for 0.
NUMGATE_INLINE Pack binade(Pack v) { return from_bits(bits_of(v) & kExponent); }
// Of non-negative values, or of 0 and powers of two.
NUMGATE_INLINE Pack larger(Pack a, Pack b) {
  return from_bits(bits_of(a) > bits_of(b) ? bits_of(a) : bits_of(b));
}
// Toward zero to an integer, |v| < 2^63.
NUMGATE_INLINE Pack integer_part(Pack v) {
  return __builtin_convertvector(__builtin_convertvector(v, PackBits), Pack);
}
// To the nearest multiple of q, a power of two, ties to even; |v| < 2^51 q.
NUMGATE_INLINE Pack nearest_multiple(Pack v, Pack q) {
  const Pack big = q * 0x1.8p52;
  return (v + big) - big;
}

// splitmix64's output function.
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Eight xorshift64 streams: noise, one step per vector.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (int i = 0; i < kLanes; ++i) {
      seed += 0x9e3779b97f4a7c15u;
      state_[i] = mix(seed) | 1;  // never 0, where xorshift stays
    }
  }
  // Uniform in [-1/2, 1/2) times 2^64: whoever uses it scales anyway.
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

// How a rounding to nearest is read: in mode I as x + U(-1/2, 1/2) ulp, in mode D to nearest on a
// grid shifted by an offset. With offset 0 that is what the hardware does.
enum class Reading : std::uint8_t { independent, dithered };

// v rounded where `where` holds (all bits set), to the grid of spacing q; `offset` in units of q.
template <Reading reading>
NUMGATE_INLINE Pack rounded(Pack v, Pack q, PackBits where, double offset, double amplitude,
                            Random& random) {
  if constexpr (reading == Reading::independent) {
    return v + from_bits(bits_of(random.next() * (q * (amplitude * 0x1p-64))) & where);
  } else {
    const Pack shift = q * offset;
    const Pack error = (nearest_multiple(v + shift, q) - shift) - v;
    return v + from_bits(bits_of(error * amplitude) & where);
  }
}

}  // namespace numgate::shadow
