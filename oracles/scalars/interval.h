// MPFI intervals as a scalar of the definitions: every operation rounds outward, so the exact value
// stays inside. For the scalar stages and short recurrences; through a long recurrence the width
// explodes.
#pragma once
#include <boost/multiprecision/mpfi.hpp>

#include "oracles/scalars/multiprecision.h"

namespace numgate {

// 254 bits, as Mpfr256.
using Interval = boost::multiprecision::number<boost::multiprecision::mpfi_float_backend<76>,
                                               boost::multiprecision::et_off>;

// Whether x lies inside, once the interval is widened by radius on both sides.
inline bool contains(const Interval& i, const DoubleDouble<double>& x, double radius = 0) {
  const Interval value = exactly<Interval>(x);
  Interval widened;
  mpfi_interv_d(widened.backend().data(), -radius, radius);
  widened += i;
  return mpfi_is_inside(value.backend().data(), widened.backend().data()) != 0;
}
inline double width(const Interval& i) {
  Mpfr256 w;
  mpfi_diam_abs(w.backend().data(), i.backend().data());
  return to_double(w);
}

}  // namespace numgate
