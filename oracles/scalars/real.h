// What a definition may ask of its scalar, whatever the scalar is: double, double-double, MPFR, an
// interval.
//
// Besides + - * / and comparison, found by argument-dependent lookup: sqrt, exp, expm1, log1p,
// sigmoid, softplus.
#pragma once
#include <cmath>

#include "oracles/scalars/host_device.h"

namespace numgate {

// The decimal number itself, rounded once to Real (an interval encloses it):
// constant<Real>("1e-6").
template <class Real>
struct Constant {
  static Real parse(const char* decimal) { return Real(decimal); }
};
template <>
struct Constant<double> {
  static double parse(const char* decimal);
};
template <class Real>
Real constant(const char* decimal) {
  return Constant<Real>::parse(decimal);
}

// s += a b, and the same on an accumulator: a scalar may keep a long sum in a wider form than its
// own.
template <class Sum, class A, class B>
NUMGATE_HOST_DEVICE void add_product(Sum& s, const A& a, const B& b) {
  s += a * b;
}
template <class Real>
struct Accumulator {
  Real sum = Real(0.0);
  NUMGATE_HOST_DEVICE Real value() const { return sum; }
};
template <class Real, class A, class B>
NUMGATE_HOST_DEVICE void add_product(Accumulator<Real>& s, const A& a, const B& b) {
  add_product(s.sum, a, b);
}

// 1 / (1 + e^-x) and log(1 + e^x). x occurs once, so intervals stay tight.
template <class Real>
NUMGATE_HOST_DEVICE Real sigmoid(const Real& x) {
  using std::exp;
  return Real(1.0) / (Real(1.0) + exp(-x));
}
template <class Real>
NUMGATE_HOST_DEVICE Real softplus(const Real& x) {
  using std::exp, std::log1p;
  return log1p(exp(x));
}

}  // namespace numgate
