// Double-double arithmetic: an unevaluated sum hi + lo with |lo| <= ulp(hi) / 2, about 106 bits.
//
// T is double or Pack (eight independent numbers). With u = 2^-53 and no underflow, relative errors
// are at most
//   + -        3 u^2    AccurateDWPlusDW    Joldes, Muller, Popescu, "Tight and rigorous error
//   bounds for basic
//   *          5 u^2    DWTimesDW2          building blocks of double-word arithmetic", ACM TOMS 44
//   (2017) /         10 u^2    long division with three quotients sqrt       4 u^2    one Newton
//   step on the rounded root exp expm1 sigmoid softplus log1p    2^-100 (elementary.h)
// Once a product falls below 2^-968 its error term underflows: then add 2^-1073 to the absolute
// error. Infinities and NaN come out as NaN or infinity, no more is promised.
#pragma once
#include <compare>
#include <concepts>

#include "oracles/scalars/pack.h"
#include "oracles/scalars/real.h"

namespace numgate {

template <class T>
struct DoubleDouble {
  T hi, lo;

  DoubleDouble() = default;
  NUMGATE_INLINE DoubleDouble(T h) : hi(h), lo{} {}
  NUMGATE_INLINE DoubleDouble(T h, T l) : hi(h), lo(l) {}
#if !defined(__CUDACC__)
  NUMGATE_INLINE DoubleDouble(double h) requires(!std::same_as<T, double>)
      : hi(broadcast(h)), lo{} {}
  template <std::same_as<double> U>
  NUMGATE_INLINE DoubleDouble(const DoubleDouble<U>& x) requires(!std::same_as<T, double>)
      : hi(broadcast(x.hi)), lo(broadcast(x.lo)) {}
#endif

  friend NUMGATE_INLINE DoubleDouble operator-(DoubleDouble a) { return {-a.hi, -a.lo}; }
  friend NUMGATE_INLINE DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble s = two_sum(a.hi, b.hi), t = two_sum(a.lo, b.lo);
    const DoubleDouble v = fast_two_sum(s.hi, s.lo + t.hi);
    return fast_two_sum(v.hi, t.lo + v.lo);
  }
  friend NUMGATE_INLINE DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + -b; }
  friend NUMGATE_INLINE DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble p = raw_product(a, b);
    return fast_two_sum(p.hi, p.lo);
  }
  friend NUMGATE_INLINE DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
    const T q1 = a.hi / b.hi;
    DoubleDouble r = a - b * DoubleDouble(q1);
    const T q2 = r.hi / b.hi;
    r = r - b * DoubleDouble(q2);
    const DoubleDouble q = fast_two_sum(q1, q2);
    return fast_two_sum(q.hi, q.lo + r.hi / b.hi);
  }
  NUMGATE_INLINE DoubleDouble& operator+=(DoubleDouble b) { return *this = *this + b; }
  NUMGATE_INLINE DoubleDouble& operator-=(DoubleDouble b) { return *this = *this - b; }
  NUMGATE_INLINE DoubleDouble& operator*=(DoubleDouble b) { return *this = *this * b; }
  NUMGATE_INLINE DoubleDouble& operator/=(DoubleDouble b) { return *this = *this / b; }

  friend bool operator==(const DoubleDouble& a,
                         const DoubleDouble& b) requires std::same_as<T, double> {
    return a.hi == b.hi && a.lo == b.lo;
  }
  friend std::partial_ordering operator<=>(const DoubleDouble& a,
                                           const DoubleDouble& b) requires std::same_as<T, double> {
    return a.hi != b.hi ? a.hi <=> b.hi : a.lo <=> b.lo;
  }

  // a + b exactly; fast where |a| >= |b| or a = 0 (Knuth; Dekker).
  static NUMGATE_INLINE DoubleDouble two_sum(T a, T b) {
    const T s = a + b, bb = s - a;
    return {s, (a - (s - bb)) + (b - bb)};
  }
  static NUMGATE_INLINE DoubleDouble fast_two_sum(T a, T b) {
    const T s = a + b;
    return {s, b - (s - a)};
  }
  // a b exactly.
  static NUMGATE_INLINE DoubleDouble two_product(T a, T b) {
    const T p = a * b;
    return {p, fused(a, b, -p)};
  }
  // a b to 5 u^2, not normalised: |lo| <= 4 u |hi|.
  static NUMGATE_INLINE DoubleDouble raw_product(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble p = two_product(a.hi, b.hi);
    return {p.hi, fused(a.lo, b.hi, fused(a.hi, b.lo, p.lo))};
  }
};

using DD = DoubleDouble<double>;
#if !defined(__CUDACC__)
using DDPack = DoubleDouble<Pack>;
#endif

// s += a b. |error| <= 8 u^2 (|s| + |a b|): relative to the terms, not to what a cancellation
// leaves of them. A recurrence cannot tell, since its terms carry errors of that size already; it
// is half the work of s + a * b.
template <class T, class U>
NUMGATE_INLINE void add_product(DoubleDouble<T>& s, const DoubleDouble<U>& a,
                                const DoubleDouble<T>& b) {
  using D = DoubleDouble<T>;
  const D p = D::raw_product(D(a), b), t = D::two_sum(s.hi, p.hi);
  s = D::fast_two_sum(t.hi, t.lo + (s.lo + p.lo));
}

// A sum of products in three words (Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J.
// Sci. Comput. 26 (2005): every error of an addition is itself added up). |error| <= (n + 8) u^2
// sum |a b| for n terms. The chain from term to term is one addition long, where that of a
// double-double sum is eight.
template <class T>
struct Accumulator<DoubleDouble<T>> {
  T high{}, middle{}, low{};

  NUMGATE_INLINE DoubleDouble<T> value() const {
    using D = DoubleDouble<T>;
    const D s = D::two_sum(high, middle);
    return D::fast_two_sum(s.hi, s.lo + low);
  }
};
template <class T, class U>
NUMGATE_INLINE void add_product(Accumulator<DoubleDouble<T>>& s, const DoubleDouble<U>& a,
                                const DoubleDouble<T>& b) {
  using D = DoubleDouble<T>;
  const D p = D::raw_product(D(a), b), t = D::two_sum(s.high, p.hi),
          m = D::two_sum(s.middle, t.lo + p.lo);
  s.high = t.hi;
  s.middle = m.hi;
  s.low += m.lo;
}
// The sum of two accumulators, the same in either order; adds less than u^2 of it to their errors.
template <class T>
NUMGATE_INLINE Accumulator<DoubleDouble<T>> operator+(const Accumulator<DoubleDouble<T>>& a,
                                                      const Accumulator<DoubleDouble<T>>& b) {
  using D = DoubleDouble<T>;
  const D h = D::two_sum(a.high, b.high), m = D::two_sum(a.middle, b.middle),
          n = D::two_sum(m.hi, h.lo);
  return {h.hi, n.hi, (a.low + b.low) + (m.lo + n.lo)};
}

template <class T>
NUMGATE_INLINE DoubleDouble<T> ldexp_exact(DoubleDouble<T> x, T power_of_two) {
  return {x.hi * power_of_two, x.lo * power_of_two};
}

template <class T>
NUMGATE_HOST_DEVICE DoubleDouble<T> sqrt(const DoubleDouble<T>& x) {
  using D = DoubleDouble<T>;
  const T root = by_lane(x.hi, [](double y) { return std::sqrt(y); });
  const T rest = (x - D::two_product(root, root)).hi;
  const T step = select(root == T{}, T{}, rest / (root + root));
  return D::fast_two_sum(root, step);
}

}  // namespace numgate

#include "oracles/scalars/elementary.h"
