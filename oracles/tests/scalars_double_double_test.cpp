// Double-double against MPFR at 513 bits, on random and on adversarial numbers.
#include <gtest/gtest.h>

#include <random>

#include "oracles/definitions/kda_scalar_stages.h"
#include "oracles/scalars/interval.h"
#include "oracles/scalars/multiprecision.h"

namespace numgate {
namespace {

class Numbers {
 public:
  // hi of magnitude 2^low to 2^high and a low word of its own, sometimes absent, sometimes far
  // below.
  DD draw(int low, int high) {
    const double hi = std::ldexp(1.0 + uniform(), low + static_cast<int>(uniform() * (high - low)));
    const double lo = hi * 0x1p-53 * (uniform() - 0.5) * (uniform() < 0.2 ? 0x1p-40 : 1.0);
    const DD x = DD::fast_two_sum(hi, uniform() < 0.1 ? 0.0 : lo);
    return uniform() < 0.5 ? x : -x;
  }
  double uniform() { return std::uniform_real_distribution<double>()(engine_); }

 private:
  std::mt19937_64 engine_{7};
};

// |x - exact| over |scale|, as log2; -infinity where equal.
double log2_error(const DD& x, const Mpfr512& exact, const Mpfr512& scale) {
  const Mpfr512 e = abs(exactly<Mpfr512>(x) - exact);
  return e == 0 ? -INFINITY : to_double(Mpfr512(log2(e / abs(scale))));
}

struct Worst {
  double log2 = -INFINITY;
  DD a{}, b{};
  void operator()(const DD& x, const Mpfr512& exact, const Mpfr512& scale, const DD& a_,
                  const DD& b_ = 0.0) {
    const double e = log2_error(x, exact, scale);
    if (e > log2 || std::isnan(e)) *this = {e, a_, b_};
  }
  void at_most(double bound, const char* what) const {
    EXPECT_LE(log2, bound) << what << " at " << a.hi << " + " << a.lo << ", " << b.hi << " + "
                           << b.lo;
    ::testing::Test::RecordProperty(what, std::to_string(log2));
  }
};

TEST(DoubleDouble, ArithmeticWithinItsBounds) {
  Numbers numbers;
  Worst sum, difference, product, quotient, root, fused_sum;
  for (int i = 0; i < 30000; ++i) {
    const DD a = numbers.draw(-300, 300);
    DD b = numbers.draw(-300, 300);
    if (i % 3 == 1) b = a * DD(1.0 + numbers.uniform() * 0x1p-40);  // cancels
    if (i % 3 == 2) b = {-a.hi, a.lo * 0.75};                       // cancels to the low word
    const auto A = exactly<Mpfr512>(a), B = exactly<Mpfr512>(b);
    sum(a + b, A + B, A + B, a, b);
    difference(a - b, A - B, A - B, a, b);
    product(a * b, A * B, A * B, a, b);
    quotient(a / b, A / B, A / B, a, b);
    const DD positive = a.hi < 0 ? -a : a;
    root(sqrt(positive), sqrt(abs(A)), sqrt(abs(A)), a);
    const DD c = i % 2 ? numbers.draw(-300, 300) : -(a * b);
    DD s = c;
    add_product(s, a, b);
    fused_sum(s, exactly<Mpfr512>(c) + A * B, abs(exactly<Mpfr512>(c)) + abs(A * B), a, b);
  }
  sum.at_most(-104.4, "sum");  // 3 u^2
  difference.at_most(-104.4, "difference");
  product.at_most(-103.6, "product");        // 5 u^2
  quotient.at_most(-102.6, "quotient");      // 10 u^2
  root.at_most(-104.0, "root");              // 4 u^2
  fused_sum.at_most(-103.0, "add_product");  // 8 u^2
}

TEST(DoubleDouble, NearTheEndsOfTheRange) {
  Numbers numbers;
  Worst small, tiny, huge;
  for (int i = 0; i < 20000; ++i) {
    const DD a = numbers.draw(-970, -960), b = numbers.draw(-2, 2), c = numbers.draw(400, 500);
    const auto A = exactly<Mpfr512>(a), B = exactly<Mpfr512>(b), C = exactly<Mpfr512>(c);
    small(a + a * DD(1.5), A * 2.5, A, a);  // 1e-290
    // The error term underflows: an absolute error of a few 2^-1074.
    tiny(a * b, A * B, ldexp(Mpfr512(1.0), -1073) + abs(A * B) * ldexp(Mpfr512(1.0), -103), a, b);
    huge(c * c / c, C, C, c);
  }
  small.at_most(-101, "1e-290");
  tiny.at_most(1, "underflow");
  huge.at_most(-102, "1e300");
}

TEST(DoubleDouble, SumsOfProductsKeepEveryTerm) {
  Numbers numbers;
  Worst worst;
  for (int i = 0; i < 300; ++i) {
    Accumulator<DD> s;
    Mpfr512 exact(0.0), terms(0.0);
    for (int n = 0; n < 128; ++n) {
      const DD a = numbers.draw(-30, 30), b = numbers.draw(-30, 30);
      add_product(s, a, b);
      const Mpfr512 p = exactly<Mpfr512>(a) * exactly<Mpfr512>(b);
      exact += p;
      terms += abs(p);
    }
    worst(s.value(), exact, terms, 0.0);
  }
  worst.at_most(-98.9, "128 products");  // (128 + 8) u^2
}

TEST(DoubleDouble, ElementaryFunctionsTo2ToThe100) {
  Numbers numbers;
  Worst exponential, minus_one, logarithm, logistic, plus;
  for (int i = 0; i < 20000; ++i) {
    const DD x = i % 2 ? numbers.draw(-60, 6) : numbers.draw(-6, 6);
    const auto X = exactly<Mpfr512>(x);
    exponential(exp(x), exp(X), exp(X), x);
    minus_one(expm1(x), expm1(X), expm1(X), x);
    const DD y = x.hi < 0 ? (x.hi > -0.9 ? x : -x) : x;
    const auto Y = exactly<Mpfr512>(y);
    logarithm(log1p(y), log1p(Y), log1p(Y), y);
    logistic(sigmoid(x), sigmoid(X), sigmoid(X), x);
    plus(softplus(x), softplus(X), softplus(X), x);
  }
  exponential.at_most(-100, "exp");
  minus_one.at_most(-100, "expm1");
  logarithm.at_most(-100, "log1p");
  logistic.at_most(-100, "sigmoid");
  plus.at_most(-100, "softplus");
}

TEST(DoubleDouble, ElementaryFunctionsFarOut) {
  EXPECT_EQ(exp(DD(0.0)).hi, 1.0);
  EXPECT_EQ(exp(DD(0.0)).lo, 0.0);
  EXPECT_EQ(exp(DD(-1e300)).hi, 0.0);
  EXPECT_EQ(exp(DD(1e300)).hi, INFINITY);
  EXPECT_EQ(sigmoid(DD(-1e300)).hi, 0.0);
  EXPECT_EQ(sigmoid(DD(1e300)).hi, 1.0);
  EXPECT_EQ(softplus(DD(1e300)).hi, 1e300);
  EXPECT_EQ(softplus(DD(-1e300)).hi, 0.0);
  EXPECT_EQ(sqrt(DD(0.0)).hi, 0.0);
  // The bounded gate's amplified negative tail: -5 sigmoid(1e6 * -17) underflows, 1e6 * -0.0001
  // does not.
  EXPECT_EQ(definition::bounded_gate(DD(-18.0), DD(1e6), DD(1.0)).hi, 0.0);
  EXPECT_LT(definition::bounded_gate(DD(-1.0001), DD(1e6), DD(1.0)).hi, -1e-43);
}

TEST(DoubleDouble, APackIsEightNumbers) {
  Numbers numbers;
  for (int i = 0; i < 2000; ++i) {
    DD x[kLanes], y[kLanes];
    DDPack X, Y;
    for (int l = 0; l < kLanes; ++l) {
      x[l] = numbers.draw(-20, 7);
      y[l] = numbers.draw(-20, 7);
      X.hi[l] = x[l].hi, X.lo[l] = x[l].lo, Y.hi[l] = y[l].hi, Y.lo[l] = y[l].lo;
    }
    const auto same = [&](const DDPack& packed, auto one, const char* what) {
      for (int l = 0; l < kLanes; ++l) {
        const DD expected = one(x[l], y[l]);
        EXPECT_EQ(packed.hi[l], expected.hi) << what;
        EXPECT_EQ(packed.lo[l], expected.lo) << what;
      }
    };
    same(
        X + Y, [](DD a, DD b) { return a + b; }, "+");
    same(
        X * Y, [](DD a, DD b) { return a * b; }, "*");
    same(
        X / Y, [](DD a, DD b) { return a / b; }, "/");
    same(
        sqrt(X * X), [](DD a, DD) { return sqrt(a * a); }, "sqrt");
    same(
        exp(X), [](DD a, DD) { return exp(a); }, "exp");
    same(
        expm1(X), [](DD a, DD) { return expm1(a); }, "expm1");
    same(
        log1p(X * X), [](DD a, DD) { return log1p(a * a); }, "log1p");
    same(
        sigmoid(X), [](DD a, DD) { return sigmoid(a); }, "sigmoid");
    same(
        softplus(X), [](DD a, DD) { return softplus(a); }, "softplus");
  }
}

TEST(Scalars, ADecimalConstantIsTheDecimalNumber) {
  for (const char* decimal : {"1e-6", "1e-5", "0.1", "-5", "1"}) {
    const DD x = constant<DD>(decimal);
    const Mpfr512 exact(decimal);
    EXPECT_LE(log2_error(x, exact, exact), -106) << decimal;
    EXPECT_TRUE(contains(constant<Interval>(decimal), x, std::abs(x.hi) * 0x1p-106)) << decimal;
  }
  EXPECT_NE(constant<DD>("1e-6").lo, 0.0);
}

TEST(Scalars, DoubleDoubleConvertsExactly) {
  Numbers numbers;
  std::vector<DD> all{DD(0.0),          DD(-0.0),         {1.0, -0x1p-60}, {-1.0, 0x1p-60},
                      {1.0, 0x1p-1074}, {0x1p-1060, 0.0}, {3.0, 0x1p-200}};
  for (int i = 0; i < 20000; ++i) all.push_back(numbers.draw(-500, 500));
  for (const DD& x : all) {
    Mpfr256 fast;
    assign_exactly(fast, x);
    EXPECT_EQ(fast, exactly<Mpfr256>(x)) << x.hi << " + " << x.lo;
  }
}

}  // namespace
}  // namespace numgate
