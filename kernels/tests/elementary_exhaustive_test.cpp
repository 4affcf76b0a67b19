// Every float32 argument of every elementary function, against double. The reference is glibc's
// double exp, exp2, log2, log1p, tanh, erf (each below 1.5 double ulps), composed by at most three
// further roundings: its error is below 2^-50 relative, 1e-8 of a float32 ulp.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "kernels/elementary.h"

namespace numgate::elementary {
namespace {

struct Worst {
  double ulps = 0;
  uint32_t argument = 0;
};

double error_ulps(float y, double exact) {
  if (std::isnan(exact)) return std::bit_cast<uint32_t>(y) == 0x7fffffff ? 0 : HUGE_VAL;
  if (std::isinf(exact)) return y == exact ? 0 : HUGE_VAL;
  if (std::signbit(y) != std::signbit(exact)) return HUGE_VAL;
  const uint64_t rounded = std::bit_cast<uint32_t>(std::fabs(static_cast<float>(exact))) >> 23;
  const uint64_t binade = rounded < 1 ? 1 : rounded > 254 ? 254 : rounded;
  const double inverse_ulp = std::bit_cast<double>((1023 + 150 - binade) << 52);
  // An overflow counts as 2^128, on both sides.
  const double value = std::isinf(y) ? 0x1p128 : std::fabs(static_cast<double>(y));
  return std::fabs(value - std::fmin(std::fabs(exact), 0x1p128)) * inverse_ulp;
}

template <class Function, class Reference>
void expect_within(const char* name, double bound, Function function, Reference reference) {
  Worst worst;
#pragma omp parallel
  {
    Worst mine;
#pragma omp for schedule(dynamic, 16) nowait
    for (uint32_t high = 0; high < 0x10000; ++high) {
      for (uint32_t low = 0; low < 0x10000; ++low) {
        const uint32_t argument = high << 16 | low;
        const float x = std::bit_cast<float>(argument);
        const double ulps = error_ulps(function(x), reference(static_cast<double>(x)));
        if (!(ulps <= mine.ulps)) mine = {ulps, argument};
      }
    }
#pragma omp critical
    if (!(mine.ulps <= worst.ulps)) worst = mine;
  }
  std::printf("%s: %.6f ulp at 0x%08x (%a)\n", name, worst.ulps, worst.argument,
              static_cast<double>(std::bit_cast<float>(worst.argument)));
  EXPECT_LE(worst.ulps, bound) << name;
}

#define EXHAUSTIVE(name, bound, reference)                         \
  TEST(ElementaryExhaustive, name) {                               \
    expect_within(                                                 \
        #name, bound, [](float x) { return elementary::name(x); }, \
        [](double x) -> double { return reference; });             \
  }

EXHAUSTIVE(exp2, kExp2MaxUlp, std::exp2(x))
EXHAUSTIVE(log2, kLog2MaxUlp, std::log2(x))
EXHAUSTIVE(exp, kExpMaxUlp, std::exp(x))
EXHAUSTIVE(log1p, kLog1pMaxUlp, std::log1p(x))
EXHAUSTIVE(sigmoid, kSigmoidMaxUlp, 1 / (1 + std::exp(-x)))
EXHAUSTIVE(softplus, kSoftplusMaxUlp,
           (x > 0           ? x
            : std::isnan(x) ? x
                            : 0) +
               std::log1p(std::exp(-std::fabs(x))))
EXHAUSTIVE(silu, kSiluMaxUlp, x == -HUGE_VAL ? -0.0 : x / (1 + std::exp(-x)))
EXHAUSTIVE(rsqrt, kRsqrtMaxUlp, 1 / std::sqrt(x))
EXHAUSTIVE(tanh, kTanhMaxUlp, std::tanh(x))
EXHAUSTIVE(erf, kErfMaxUlp, std::erf(x))

}  // namespace
}  // namespace numgate::elementary
