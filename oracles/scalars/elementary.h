// Elementary functions in double-double, for one number or eight. Relative error at most 2^-100
// unless the result underflows; against MPFR the tests meet 2^-101.6.
//
// exp: x = n ln2/64 + r with |r| <= ln2/128, n = 64 k + j; e^x = 2^k 2^(j/64) (1 + expm1(r)), and
// the polynomial of expm1 has its first six terms in double-double. log1p: one Halley step on the
// libm value, cubic, so 53 bits become 106. Included by double_double.h.
#pragma once
#include <array>

#include "oracles/scalars/double_double.h"

namespace numgate {

struct ElementaryConstants {
  std::array<DoubleDouble<double>, 64> root;               // 2^(j/64)
  std::array<double, 3> step;                              // ln2/64 in three words
  std::array<DoubleDouble<double>, 13> inverse_factorial;  // 1/n!
};
// Computed once with MPFR.
const ElementaryConstants& elementary_constants();

#if defined(__CUDACC__)
// The same on the device, in each file that calls these functions there; to be uploaded first.
static __device__ ElementaryConstants device_elementary_constants;
#endif

template <>
struct Constant<DoubleDouble<double>> {
  static DoubleDouble<double> parse(const char* decimal);
};
#if !defined(__CUDACC__)
template <>
struct Constant<DoubleDouble<Pack>> {
  static DoubleDouble<Pack> parse(const char* decimal) {
    return Constant<DoubleDouble<double>>::parse(decimal);
  }
};
#endif

namespace elementary {

NUMGATE_INLINE const ElementaryConstants& constants() {
#if defined(__CUDA_ARCH__)
  return device_elementary_constants;
#else
  return elementary_constants();
#endif
}

NUMGATE_INLINE DoubleDouble<double> look_up(const std::array<DoubleDouble<double>, 64>& table,
                                            std::int64_t j) {
  return table[static_cast<std::size_t>(j)];
}
#if !defined(__CUDACC__)
NUMGATE_INLINE DoubleDouble<Pack> look_up(const std::array<DoubleDouble<double>, 64>& table,
                                          PackBits j) {
  DoubleDouble<Pack> r;
  for (int i = 0; i < kLanes; ++i) {
    r.hi[i] = table[static_cast<std::size_t>(j[i])].hi;
    r.lo[i] = table[static_cast<std::size_t>(j[i])].lo;
  }
  return r;
}
#endif

template <class T>
struct ExpParts {
  DoubleDouble<T> root, small;
  T scale, rest;  // powers of two, both in range
};

// e^x = scale rest root (1 + small), for x clamped to [-800, 720], beyond which e^x is 0 or
// infinite.
template <class T>
NUMGATE_INLINE ExpParts<T> split(const DoubleDouble<T>& given) {
  using D = DoubleDouble<T>;
  const auto& c = constants();
  const auto low = given.hi<-800.0, high = given.hi> 720.0;
  const D x{select(low, T{} - 800.0, select(high, T{} + 720.0, given.hi)),
            select(low, T{}, select(high, T{}, given.lo))};
  // Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits.
  constexpr double kRounder = 6755399441055744.0;
  const T shifted = x.hi * 92.332482616893657 + kRounder;  // 64 / ln 2
  const T n = shifted - kRounder;
  const auto integer = bits_of(shifted) - std::bit_cast<std::int64_t>(kRounder);
  const auto j = integer & 63, k = integer >> 6;

  D r = x - D::two_product(n, T{} + c.step[0]);
  r = r - D::two_product(n, T{} + c.step[1]);
  r = r - D(n * c.step[2]);

  T tail = T{} + c.inverse_factorial[12].hi;
  for (int i = 11; i >= 7; --i)
    tail = tail * r.hi + c.inverse_factorial[static_cast<std::size_t>(i)].hi;
  D p = r * D(tail);
  for (int i = 6; i >= 2; --i) p = (p + D(c.inverse_factorial[static_cast<std::size_t>(i)])) * r;
  const auto half = k >> 1;
  return {look_up(c.root, j), p * r + r, from_bits((half + 1023) << 52),
          from_bits((k - half + 1023) << 52)};
}

}  // namespace elementary

template <class T>
NUMGATE_HOST_DEVICE DoubleDouble<T> exp(const DoubleDouble<T>& x) {
  const auto e = elementary::split(x);
  return ldexp_exact(ldexp_exact(e.root * e.small + e.root, e.scale), e.rest);
}

template <class T>
NUMGATE_HOST_DEVICE DoubleDouble<T> expm1(const DoubleDouble<T>& x) {
  using D = DoubleDouble<T>;
  const auto e = elementary::split(x);
  const D root = ldexp_exact(ldexp_exact(e.root, e.scale), e.rest);
  return root * e.small + (root - D(1.0));
}

// x > -1.
template <class T>
NUMGATE_HOST_DEVICE DoubleDouble<T> log1p(const DoubleDouble<T>& x) {
  using D = DoubleDouble<T>;
  const T guess = by_lane(x.hi, [](double y) { return std::log1p(y); });
  const D e = expm1(D(guess));
  const T step = 2.0 * (x - e).hi / (2.0 + x.hi + e.hi);
  return D::fast_two_sum(guess, step);
}

template <class T>
NUMGATE_HOST_DEVICE DoubleDouble<T> minus_abs(const DoubleDouble<T>& x) {
  return {select(x.hi < 0.0, x.hi, -x.hi), select(x.hi < 0.0, x.lo, -x.lo)};
}

// Both through e^-|x|, which cannot overflow.
template <class T>
NUMGATE_HOST_DEVICE DoubleDouble<T> sigmoid(const DoubleDouble<T>& x) {
  using D = DoubleDouble<T>;
  const D e = exp(minus_abs(x));
  const D numerator{select(x.hi < 0.0, e.hi, T{} + 1.0), select(x.hi < 0.0, e.lo, T{})};
  return numerator / (D(1.0) + e);
}
template <class T>
NUMGATE_HOST_DEVICE DoubleDouble<T> softplus(const DoubleDouble<T>& x) {
  using D = DoubleDouble<T>;
  const D positive{select(x.hi < 0.0, T{}, x.hi), select(x.hi < 0.0, T{}, x.lo)};
  return positive + log1p(exp(minus_abs(x)));
}

}  // namespace numgate
