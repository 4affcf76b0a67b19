#include "kernels/elementary.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace numgate::elementary {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint32_t kNan = 0x7fffffff;

// y = f(x) with 96 bits; x may be overwritten.
using Reference = void (*)(mpfr_t y, mpfr_t x);

struct Function {
  const char* name;
  float (*value)(float);
  Reference reference;
  double bound;
  uint32_t worst;  // the argument of the largest error over all float32
};

void exp_of_minus(mpfr_t y, mpfr_t x) {
  mpfr_neg(y, x, MPFR_RNDN);
  mpfr_exp(y, y, MPFR_RNDN);
}

void one_plus_exp_of_minus(mpfr_t y, mpfr_t x) {
  exp_of_minus(y, x);
  mpfr_add_ui(y, y, 1, MPFR_RNDN);
}

template <int (*F)(mpfr_t, mpfr_srcptr, mpfr_rnd_t)>
void rounded(mpfr_t y, mpfr_t x) {
  F(y, x, MPFR_RNDN);
}

void sigmoid_reference(mpfr_t y, mpfr_t x) {
  one_plus_exp_of_minus(y, x);
  mpfr_ui_div(y, 1, y, MPFR_RNDN);
}

void silu_reference(mpfr_t y, mpfr_t x) {
  one_plus_exp_of_minus(y, x);
  mpfr_div(y, x, y, MPFR_RNDN);
}

// max(x, 0) + log1p(e^-|x|), whose exponential cannot overflow.
void softplus_reference(mpfr_t y, mpfr_t x) {
  const bool positive = mpfr_sgn(x) > 0;
  mpfr_abs(y, x, MPFR_RNDN);
  exp_of_minus(y, y);
  mpfr_log1p(y, y, MPFR_RNDN);
  if (positive) mpfr_add(y, y, x, MPFR_RNDN);
}

const Function kFunctions[] = {
    {"exp2", exp2, rounded<mpfr_exp2>, kExp2MaxUlp, 0xbee82453},
    {"log2", log2, rounded<mpfr_log2>, kLog2MaxUlp, 0x3fae4c08},
    {"exp", exp, rounded<mpfr_exp>, kExpMaxUlp, 0xc0bb14f7},
    {"log1p", log1p, rounded<mpfr_log1p>, kLog1pMaxUlp, 0x3eba1a75},
    {"sigmoid", sigmoid, sigmoid_reference, kSigmoidMaxUlp, 0xc18515ec},
    {"softplus", softplus, softplus_reference, kSoftplusMaxUlp, 0xbfa21f95},
    {"silu", silu, silu_reference, kSiluMaxUlp, 0xc1ff1236},
    {"rsqrt", rsqrt, rounded<mpfr_rec_sqrt>, kRsqrtMaxUlp, 0x0044f81c},
    {"tanh", tanh, rounded<mpfr_tanh>, kTanhMaxUlp, 0x3f0d58b9},
    {"erf", erf, rounded<mpfr_erf>, kErfMaxUlp, 0x3f87aa77},
};

const Function& function_named(const std::string& name) {
  for (const Function& f : kFunctions) {
    if (name == f.name) return f;
  }
  throw std::out_of_range(name);
}

uint32_t random_bits(uint64_t counter) {  // SplitMix64
  uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<uint32_t>((z ^ (z >> 31)) >> 32);
}

// Alternately any pattern, and |x| in [2^-24, 2^8), where the functions are not trivial.
float random_argument(uint64_t counter) {
  const uint32_t bits = random_bits(counter);
  if (counter % 2 == 0) return std::bit_cast<float>(bits);
  const uint32_t exponent = 103 + (bits >> 23 & 0xff) % 32;
  return std::bit_cast<float>((bits & 0x807fffff) | exponent << 23);
}

class Judge {
 public:
  Judge() { mpfr_inits2(96, x_, y_, static_cast<mpfr_ptr>(nullptr)); }
  ~Judge() { mpfr_clears(x_, y_, static_cast<mpfr_ptr>(nullptr)); }
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  double error_ulps(const Function& f, float x) {
    const float value = f.value(x);
    mpfr_set_flt(x_, x, MPFR_RNDN);
    f.reference(y_, x_);
    if (mpfr_nan_p(y_)) return std::bit_cast<uint32_t>(value) == kNan ? 0 : HUGE_VAL;
    const float rounded = mpfr_get_flt(y_, MPFR_RNDN);
    if (value == rounded && std::isinf(value)) return 0;
    if (std::signbit(value) != std::signbit(rounded)) return HUGE_VAL;
    if (std::isinf(value)) return HUGE_VAL;
    int exponent = -126;
    if (std::fabs(rounded) >= 0x1p-126f) exponent = std::min(std::ilogb(rounded), 127);
    mpfr_sub_d(y_, y_, static_cast<double>(value), MPFR_RNDN);
    return std::fabs(std::ldexp(mpfr_get_d(y_, MPFR_RNDN), 23 - exponent));
  }

 private:
  mpfr_t x_, y_;
};

class Elementary : public testing::TestWithParam<Function> {};

TEST_P(Elementary, RandomArgumentsWithinBound) {
  constexpr int64_t kCount = 1 << 20;
  double worst = 0;
#pragma omp parallel reduction(max : worst)
  {
    Judge judge;
#pragma omp for
    for (int64_t i = 0; i < kCount; ++i) {
      worst = std::fmax(worst, judge.error_ulps(GetParam(), random_argument(i)));
    }
    mpfr_free_cache();
  }
  EXPECT_LE(worst, GetParam().bound);
  EXPECT_GE(worst, 0.49);  // a bound that nothing approaches is not being tested
}

TEST_P(Elementary, WorstArgument) {
  Judge judge;
  const Function& f = GetParam();
  const double worst = judge.error_ulps(f, std::bit_cast<float>(f.worst));
  EXPECT_GT(worst, f.bound - 0.002);
  for (uint32_t bits = f.worst - 256; bits != f.worst + 256; ++bits) {
    EXPECT_LE(judge.error_ulps(f, std::bit_cast<float>(bits)), worst) << std::hex << bits;
  }
}

TEST_P(Elementary, NanIsCanonical) {
  for (uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff800001u, 0x7fffffffu}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(GetParam().value(std::bit_cast<float>(bits))), kNan);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Elementary, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ElementarySpecial, Values) {
  struct Special {
    const char* name;
    float x, y;
  };
  constexpr float kTiny = 0x1p-149f, kMax = std::numeric_limits<float>::max();
  const float nan = std::bit_cast<float>(kNan);
  const Special specials[] = {
      {"exp2", 0, 1},
      {"exp2", -0.0f, 1},
      {"exp2", kInf, kInf},
      {"exp2", -kInf, 0},
      {"exp2", 128, kInf},
      {"exp2", -151, 0},
      {"exp2", kMax, kInf},
      {"exp2", -kMax, 0},
      {"exp2", kTiny, 1},
      {"log2", 0, -kInf},
      {"log2", -0.0f, -kInf},
      {"log2", 1, 0},
      {"log2", kInf, kInf},
      {"log2", -1, nan},
      {"log2", -kInf, nan},
      {"log2", -kTiny, nan},
      {"exp", 0, 1},
      {"exp", -0.0f, 1},
      {"exp", kInf, kInf},
      {"exp", -kInf, 0},
      {"exp", 88.75f, kInf},
      {"exp", -104, 0},
      {"exp", kMax, kInf},
      {"exp", -kMax, 0},
      {"log1p", 0, 0},
      {"log1p", -0.0f, -0.0f},
      {"log1p", -1, -kInf},
      {"log1p", kInf, kInf},
      {"log1p", -1.5f, nan},
      {"log1p", -kInf, nan},
      {"log1p", kTiny, kTiny},
      {"log1p", -kTiny, -kTiny},
      {"sigmoid", 0, 0.5f},
      {"sigmoid", kInf, 1},
      {"sigmoid", -kInf, 0},
      {"sigmoid", -0.0f, 0.5f},
      {"softplus", -kInf, 0},
      {"softplus", kInf, kInf},
      {"softplus", kMax, kMax},
      {"softplus", -kMax, 0},
      {"silu", 0, 0},
      {"silu", -0.0f, -0.0f},
      {"silu", kInf, kInf},
      {"silu", -kInf, -0.0f},
      {"silu", kMax, kMax},
      {"silu", -kMax, -0.0f},
      {"rsqrt", 0, kInf},
      {"rsqrt", -0.0f, -kInf},
      {"rsqrt", kInf, 0},
      {"rsqrt", -1, nan},
      {"rsqrt", -kInf, nan},
      {"rsqrt", 4, 0.5f},
      {"tanh", 0, 0},
      {"tanh", -0.0f, -0.0f},
      {"tanh", kInf, 1},
      {"tanh", -kInf, -1},
      {"tanh", kTiny, kTiny},
      {"tanh", -kMax, -1},
      {"erf", 0, 0},
      {"erf", -0.0f, -0.0f},
      {"erf", kInf, 1},
      {"erf", -kInf, -1},
      {"erf", kTiny, kTiny},
      {"erf", -kMax, -1},
  };
  for (const Special& s : specials) {
    EXPECT_EQ(std::bit_cast<uint32_t>(function_named(s.name).value(s.x)),
              std::bit_cast<uint32_t>(s.y))
        << s.name << '(' << s.x << ')';
  }
}

TEST(ElementarySpecial, PowersOfTwoAreExact) {
  for (int n = -149; n <= 127; ++n) {
    const float power = std::ldexp(1.0f, n);
    EXPECT_EQ(elementary::exp2(static_cast<float>(n)), power);
    EXPECT_EQ(elementary::log2(power), static_cast<float>(n));
    if (n % 2 == 0) {
      EXPECT_EQ(elementary::rsqrt(power), std::ldexp(1.0f, -n / 2));
    }
  }
}

}  // namespace
// Decays: exp2's bits where those are normal numbers, an ulp or less from 2^x down to 2^-126.5,
// zero below, and NaN stays NaN.
TEST(ElementarySpecial, Exp2Flushed) {
  for (float x = -125.49f; x < 125.5f; x += 0.00371f)
    ASSERT_EQ(elementary::exp2_flushed(x), elementary::exp2(x)) << x;
  for (float x = -126.49f; x < -125.5f; x += 0.00137f)
    ASSERT_NEAR(elementary::exp2_flushed(x), std::exp2(double{x}), 0x1p-149) << x;
  for (const float x : {-126.6f, -127.0f, -200.0f, -1e30f, -std::numeric_limits<float>::infinity()})
    EXPECT_EQ(std::bit_cast<std::uint32_t>(elementary::exp2_flushed(x)), 0u) << x;
  EXPECT_TRUE(std::isnan(elementary::exp2_flushed(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace numgate::elementary
