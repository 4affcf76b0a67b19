// Eight doubles at a time, and the bit tricks of rounding on them. Compiler vectors: AVX-512 where
// the machine has it, shorter instructions elsewhere, the same values everywhere.
#pragma once
#include <cstdint>
#include <cstring>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // everything here is inlined: no vector crosses a call

namespace numgate::shadow {

inline constexpr int kLanes = 8;
typedef double Vec __attribute__((vector_size(64)));
typedef std::int64_t Bits __attribute__((vector_size(64)));
typedef double LooseVec __attribute__((vector_size(64), aligned(8), may_alias));

#define NUMGATE_INLINE __attribute__((always_inline)) inline

NUMGATE_INLINE Vec load(const double* p) { return *reinterpret_cast<const LooseVec*>(p); }
NUMGATE_INLINE void save(double* p, Vec v) { *reinterpret_cast<LooseVec*>(p) = v; }
NUMGATE_INLINE Vec fill(double x) { return x - Vec{}; }
NUMGATE_INLINE Bits bits(Vec v) { return reinterpret_cast<Bits>(v); }
NUMGATE_INLINE Vec from_bits(Bits b) { return reinterpret_cast<Vec>(b); }

inline constexpr std::int64_t kExponent = 0x7ff0000000000000, kMagnitude = 0x7fffffffffffffff;
// The exponent field of 2^e.
constexpr std::int64_t field(int e) { return std::int64_t{e + 1023} << 52; }
constexpr double power(int e) { return __builtin_bit_cast(double, field(e)); }

// The largest power of two <= |v|, 0 for 0.
NUMGATE_INLINE Vec binade(Vec v) { return from_bits(bits(v) & kExponent); }
// Of non-negative values, or of 0 and powers of two.
NUMGATE_INLINE Vec larger(Vec a, Vec b) { return from_bits(bits(a) > bits(b) ? bits(a) : bits(b)); }
// Toward zero to an integer, |v| < 2^63.
NUMGATE_INLINE Vec integer_part(Vec v) {
  return __builtin_convertvector(__builtin_convertvector(v, Bits), Vec);
}
// To the nearest multiple of q, a power of two, ties to even; |v| < 2^51 q.
NUMGATE_INLINE Vec nearest_multiple(Vec v, Vec q) {
  const Vec big = q * 0x1.8p52;
  return (v + big) - big;
}

// Eight xorshift64 streams: noise, one step per vector. Seeded by splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (int i = 0; i < kLanes; ++i) {
      seed += 0x9e3779b97f4a7c15u;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      state_[i] = z ^ (z >> 31) ? z ^ (z >> 31) : 1;
    }
  }
  // Uniform in [-1/2, 1/2) times 2^64: whoever uses it scales anyway.
  NUMGATE_INLINE Vec next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return __builtin_convertvector(reinterpret_cast<Bits>(state_), Vec);
  }

 private:
  typedef std::uint64_t Words __attribute__((vector_size(64)));
  Words state_;
};

// How a rounding to nearest is read.
enum class Reading : std::uint8_t {
  independent,  // mode I: x + U(-1/2, 1/2) ulp
  dithered,  // mode D: to nearest on a grid shifted by an offset; with offset 0 what the hardware
             // does
};

// v rounded where `where` holds (all bits set), to the grid of spacing q; `offset` in units of q.
template <Reading reading>
NUMGATE_INLINE Vec rounded(Vec v, Vec q, Bits where, double offset, double amplitude,
                           Random& random) {
  if constexpr (reading == Reading::independent) {
    return v + from_bits(bits(random.next() * (q * (amplitude * 0x1p-64))) & where);
  } else {
    const Vec shift = q * offset;
    const Vec error = (nearest_multiple(v + shift, q) - shift) - v;
    return v + from_bits(bits(error * amplitude) & where);
  }
}

}  // namespace numgate::shadow

#pragma GCC diagnostic pop
