// MPFR as a scalar of the definitions, through Boost.Multiprecision.
#pragma once
#include <boost/multiprecision/mpfr.hpp>

#include "oracles/scalars/double_double.h"
#include "oracles/scalars/real.h"

namespace numgate {

template <unsigned Digits>
using Mpfr = boost::multiprecision::number<
    boost::multiprecision::mpfr_float_backend<Digits, boost::multiprecision::allocate_stack>,
    boost::multiprecision::et_off>;

// Boost turns decimal digits into bits: 76 make 254, the most that four 64-bit limbs hold; 154 make
// 513.
using Mpfr256 = Mpfr<76>;
using Mpfr512 = Mpfr<154>;

template <unsigned Digits>
double to_double(const Mpfr<Digits>& x) {
  return mpfr_get_d(x.backend().data(), MPFR_RNDN);
}
inline double to_double(double x) { return x; }
inline double to_double(const DoubleDouble<double>& x) { return x.hi; }

template <unsigned Digits>
DoubleDouble<double> to_double_double(const Mpfr<Digits>& x) {
  const double hi = to_double(x);
  return {hi, to_double(Mpfr<Digits>(x - hi))};
}
// hi + lo exactly, as long as they lie within the precision of each other.
template <class Real>
Real exactly(const DoubleDouble<double>& x) {
  Real r(x.hi);
  r += x.lo;
  return r;
}
// The same by writing the significand, a fifth of the time: an audit converts three numbers for
// every four products.
void assign_exactly(Mpfr256& r, const DoubleDouble<double>& x);

// s += a b with one rounding, and without a temporary.
template <unsigned Digits>
void add_product(Mpfr<Digits>& s, const Mpfr<Digits>& a, const Mpfr<Digits>& b) {
  mpfr_fma(s.backend().data(), a.backend().data(), b.backend().data(), s.backend().data(),
           MPFR_RNDN);
}

}  // namespace numgate
