// Eight doubles that go through the same operations: columns of a state, tokens, or channels. nvcc
// sees the functions of one double alone: it has no vectors on the device.
#pragma once
#if defined(__AVX512F__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

#include <bit>
#include <cmath>
#include <cstdint>

#include "oracles/scalars/host_device.h"

namespace numgate {

inline constexpr int kLanes = 8;

// One rounding. The build forbids contraction, so the instruction is asked for by name.
NUMGATE_INLINE double fused(double a, double b, double c) { return std::fma(a, b, c); }
NUMGATE_INLINE double select(bool take, double a, double b) { return take ? a : b; }
NUMGATE_INLINE std::int64_t bits_of(double x) { return std::bit_cast<std::int64_t>(x); }
NUMGATE_INLINE double from_bits(std::int64_t x) { return std::bit_cast<double>(x); }

// f applied to each lane; for what is not hot.
template <class F>
NUMGATE_HOST_DEVICE double by_lane(double x, F f) {
  return f(x);
}

#if !defined(__CUDACC__)
using Pack = double __attribute__((vector_size(64)));
using PackBits = std::int64_t __attribute__((vector_size(64)));

NUMGATE_INLINE Pack broadcast(double x) { return Pack{x, x, x, x, x, x, x, x}; }
NUMGATE_INLINE Pack fused(Pack a, Pack b, Pack c) {
#if defined(__AVX512F__)
  return (Pack)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#else
  Pack r;
  for (int i = 0; i < kLanes; ++i) r[i] = std::fma(a[i], b[i], c[i]);
  return r;
#endif
}
NUMGATE_INLINE Pack select(PackBits take, Pack a, Pack b) { return take ? a : b; }
NUMGATE_INLINE PackBits bits_of(Pack x) { return (PackBits)x; }
NUMGATE_INLINE Pack from_bits(PackBits x) { return (Pack)x; }

template <class F>
Pack by_lane(Pack x, F f) {
  Pack r;
  for (int i = 0; i < kLanes; ++i) r[i] = f(x[i]);
  return r;
}
#endif

}  // namespace numgate
