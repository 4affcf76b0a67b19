// Elementary functions with the same bits on every machine: libm's differ between versions, and
// with them the inputs of a case would. Only operations that IEEE 754 rounds exactly (+ - * / sqrt)
// and moves of bits are used, and nothing is contracted (-ffp-contract=off). Errors are a few ulps
// of double.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace numgate::portable {

inline constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;

// 2 atanh(s) for |s| <= 0.172, by its series up to s^21.
inline double twice_atanh(double s) {
  constexpr double kOdd[] = {1.,      1. / 3,  1. / 5,  1. / 7,  1. / 9, 1. / 11,
                             1. / 13, 1. / 15, 1. / 17, 1. / 19, 1. / 21};
  const double z = s * s;
  double sum = 0;
  for (int n = 10; n >= 0; --n) sum = sum * z + kOdd[n];
  return 2 * s * sum;
}

// Finite x > 0 that is not subnormal.
inline double log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m > 1.4142135623730951) m *= 0.5, ++exponent;
  const auto e = static_cast<double>(exponent);
  return e * kLn2High + (twice_atanh((m - 1) / (m + 1)) + e * kLn2Low);
}

inline double log1p(double x) {
  return x > -0.29 && x < 0.41 ? twice_atanh(x / (2 + x)) : log(1 + x);
}

// exp(r) - 1 for |r| <= 0.35, by its series up to r^14.
inline double expm1_series(double r) {
  constexpr double kFactorial[] = {1.,       1.,        2.,         6.,          24.,
                                   120.,     720.,      5040.,      40320.,      362880.,
                                   3628800., 39916800., 479001600., 6227020800., 87178291200.};
  double sum = 0;
  for (int n = 14; n >= 1; --n) sum = sum * r + 1 / kFactorial[n];
  return sum * r;
}

inline double exp(double x) {
  if (x < -746) return 0;
  constexpr double kShifter = 0x1.8p52;  // adding and subtracting it rounds to an integer
  const double n = (x * 0x1.71547652b82fep0 + kShifter) - kShifter;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  return std::ldexp(1 + expm1_series(r), static_cast<int>(n));
}

inline double expm1(double x) { return x > -0.35 && x < 0.35 ? expm1_series(x) : exp(x) - 1; }

inline double sigmoid(double x) {
  const double e = exp(x < 0 ? x : -x);
  return (x < 0 ? e : 1) / (1 + e);
}
inline double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(x > 0 ? -x : x)); }

// Inverses: of the sigmoid for 0 < p < 1, of the softplus for y > 0.
inline double logit(double p) { return log(p / (1 - p)); }
inline double inverse_softplus(double y) { return y > 40 ? y : log(expm1(y)); }

// Inverse of the normal distribution for 2^-33 <= p <= 1 - 2^-33: Wichura (1988), algorithm AS 241,
// whose branch for p < exp(-25) these p never reach. q = p - 1/2; the middle is where |q| <= 0.425.
inline constexpr double kInverseNormalMiddle = 0.425;
inline double inverse_normal_middle(double q) {
  const double r = 0.180625 - q * q;
  const double num = ((((((2.5090809287301226727e+3 * r + 3.3430575583588128105e+4) * r +
                          6.7265770927008700853e+4) *
                             r +
                         4.5921953931549871457e+4) *
                            r +
                        1.3731693765509461125e+4) *
                           r +
                       1.9715909503065514427e+3) *
                          r +
                      1.3314166789178437745e+2) *
                         r +
                     3.3871328727963666080e+0;
  const double den = ((((((5.2264952788528545610e+3 * r + 2.8729085735721942674e+4) * r +
                          3.9307895800092710610e+4) *
                             r +
                         2.1213794301586595867e+4) *
                            r +
                        5.3941960214247511077e+3) *
                           r +
                       6.8718700749205790830e+2) *
                          r +
                      4.2313330701600911252e+1) *
                         r +
                     1.0;
  return q * num / den;
}
inline double inverse_normal_tail(double p) {
  const double q = p - 0.5;
  const double r = std::sqrt(-log(q < 0 ? p : 1 - p)) - 1.6;
  const double num = ((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r +
                          2.41780725177450611770e-1) *
                             r +
                         1.27045825245236838258e+0) *
                            r +
                        3.64784832476320460504e+0) *
                           r +
                       5.76949722146069140550e+0) *
                          r +
                      4.63033784615654529590e+0) *
                         r +
                     1.42343711074968357734e+0;
  const double den = ((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r +
                          1.51986665636164571966e-2) *
                             r +
                         1.48103976427480074590e-1) *
                            r +
                        6.89767334985100004550e-1) *
                           r +
                       1.67638483018380384940e+0) *
                          r +
                      2.05319162663775882187e+0) *
                         r +
                     1.0;
  return q < 0 ? -num / den : num / den;
}
inline double inverse_normal(double p) {
  const double q = p - 0.5;
  return q >= -kInverseNormalMiddle && q <= kInverseNormalMiddle ? inverse_normal_middle(q)
                                                                 : inverse_normal_tail(p);
}

// The nearest bf16, ties to even, straight from double (through float it would round twice).
inline std::uint16_t to_bf16(double x) {
  if (std::fabs(x) < 0x1p-126) {  // the subnormals' grid
    constexpr double kShifter = 0x1.8p52;
    x = std::copysign(((std::fabs(x) * 0x1p133 + kShifter) - kShifter) * 0x1p-133, x);
  } else {
    auto bits = std::bit_cast<std::uint64_t>(x);
    bits += ((std::uint64_t{1} << 44) - 1) + ((bits >> 45) & 1);
    x = std::bit_cast<double>(bits & ~((std::uint64_t{1} << 45) - 1));
  }
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16);
}

}  // namespace numgate::portable
