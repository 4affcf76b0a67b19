#include "property_tests/portable_math.h"

#include <gtest/gtest.h>

#include <vector>

#include "property_tests/random_stream.h"

namespace numgate {
namespace {

namespace pm = portable;

double relative(double got, long double want) {
  return static_cast<double>(std::fabs((got - want) / want));
}

TEST(PortableMath, AgreesWithLongDoubleToAFewUlps) {
  const Stream random(1, "portable_math");
  constexpr double kUlps = 4 * 0x1p-53;
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const double u = random.uniform(4 * i), x = 200 * (u - 0.5),
                 s = std::ldexp(u, static_cast<int>(i % 120) - 60);
    EXPECT_LT(relative(pm::exp(x), std::exp(static_cast<long double>(x))), kUlps) << x;
    EXPECT_LT(relative(pm::log(s), std::log(static_cast<long double>(s))), kUlps) << s;
    const double y = u - 0.5;
    EXPECT_LT(relative(pm::expm1(y), std::expm1(static_cast<long double>(y))), 2 * kUlps) << y;
    EXPECT_LT(relative(pm::log1p(s), std::log1p(static_cast<long double>(s))), kUlps) << s;
    EXPECT_LT(relative(pm::sigmoid(x), 1 / (1 + std::exp(-static_cast<long double>(x)))), 2 * kUlps)
        << x;
    EXPECT_LT(relative(pm::softplus(x), std::log1p(std::exp(static_cast<long double>(x)))),
              2 * kUlps)
        << x;
  }
}

TEST(PortableMath, InversesInvert) {
  for (double p : {1e-9, 2e-9, 1e-3, 0.3, 0.5, 0.98, 0.999})
    EXPECT_LT(relative(pm::sigmoid(pm::logit(p)), p), 1e-13) << p;
  for (double y : {1e-8, 1e-5, 1e-2, 0.5, 1.0, 4.99, 39.0, 104.0})
    EXPECT_LT(relative(pm::softplus(pm::inverse_softplus(y)), y), 1e-13) << y;
  for (double p : {0x1p-33, 1e-6, 0.01, 0.0750001, 0.3, 0.5, 0.9, 0.9999}) {
    const long double back = std::erfc(-pm::inverse_normal(p) / std::sqrt(2.0L)) / 2;
    EXPECT_LT(relative(p, back), 1e-12) << p;
  }
}

// Golden bits: another machine, compiler or libm must give the same.
TEST(PortableMath, BitsAreFixed) {
  const Stream random(42, "q");
  EXPECT_EQ(random.bits(0), 2885494171u);
  EXPECT_EQ(random.bits(1234567890123), 548216540u);
  std::uint64_t digest = 0;
  for (std::uint64_t i = 0; i < 100000; ++i)
    digest = digest * 31 + std::bit_cast<std::uint64_t>(random.normal(i)) +
             std::bit_cast<std::uint64_t>(pm::softplus(pm::log(random.uniform(i))));
  EXPECT_EQ(digest, 17937471198180640896ull);
}

TEST(PortableMath, NormalsAreThoseOfTheStreamOneByOne) {
  const Stream random(42, "q");
  for (std::uint64_t first : {0, 1, 6, 999})
    for (std::int64_t n : {1, 5, 64, 200}) {
      std::vector<double> many(static_cast<std::size_t>(n) + 1, -99);
      random.normals(first, n, many.data());
      for (std::int64_t i = 0; i < n; ++i)
        EXPECT_EQ(many[static_cast<std::size_t>(i)],
                  random.normal(first + static_cast<std::uint64_t>(i)));
      EXPECT_EQ(many.back(), -99);  // nothing beyond
    }
}

TEST(PortableMath, Bf16IsRoundedToNearestEvenStraightFromDouble) {
  const auto value = [](std::uint16_t b) { return std::bit_cast<float>(std::uint32_t{b} << 16); };
  EXPECT_EQ(pm::to_bf16(1.0), 0x3F80);
  EXPECT_EQ(pm::to_bf16(1 + 0x1p-8), 0x3F80);  // a tie goes to even
  EXPECT_EQ(pm::to_bf16(1 + 0x1p-8 + 0x1p-40),
            0x3F81);  // which rounding to float first would make a tie
  EXPECT_EQ(pm::to_bf16(1 + 3 * 0x1p-8), 0x3F82);
  EXPECT_EQ(pm::to_bf16(-0.0), 0x8000);
  EXPECT_EQ(pm::to_bf16(0x1p-133), 0x0001);
  EXPECT_EQ(pm::to_bf16(-0x1p-134), 0x8000);
  EXPECT_EQ(pm::to_bf16(0x1.ffp-127), 0x0080);
  for (std::uint32_t b = 0; b < 0x7F80; ++b)
    EXPECT_EQ(pm::to_bf16(value(static_cast<std::uint16_t>(b))), b);
  const Stream random(2, "bf16");
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double x = std::ldexp(random.normal(i), static_cast<int>(i % 200) - 100);
    EXPECT_LE(std::fabs(value(pm::to_bf16(x)) - x), std::ldexp(1.0, std::ilogb(x) - 8)) << x;
  }
}

TEST(Stream, NormalsAreNormal) {
  const Stream random(42, "k");
  constexpr std::uint64_t n = 1 << 20;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, lag = 0, last = 0, beyond = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double x = random.normal(i);
    m1 += x, m2 += x * x, m3 += x * x * x, m4 += x * x * x * x, lag += x * last,
        beyond += std::fabs(x) > 3;
    last = x;
  }
  const double sigma = 1 / std::sqrt(static_cast<double>(n));  // five standard errors each
  EXPECT_NEAR(m1 / n, 0, 5 * sigma);
  EXPECT_NEAR(m2 / n, 1, 5 * sigma * std::sqrt(2));
  EXPECT_NEAR(m3 / n, 0, 5 * sigma * std::sqrt(15));
  EXPECT_NEAR(m4 / n, 3, 5 * sigma * std::sqrt(96));
  EXPECT_NEAR(lag / n, 0, 5 * sigma);
  EXPECT_NEAR(beyond / n, 0.0026998, 5 * sigma * std::sqrt(0.0027));
}

TEST(Stream, SeedsTensorsAndIndicesAreIndependent) {
  const auto correlation = [](const Stream& a, const Stream& b, std::uint64_t shift) {
    double sum = 0;
    for (std::uint64_t i = 0; i < 65536; ++i) sum += a.normal(i) * b.normal(i + shift);
    return sum / 65536;
  };
  const Stream a(1, "q");
  for (const auto& [b, shift] : {std::pair{Stream(2, "q"), 0},
                                 {Stream(1, "k"), 0},
                                 {Stream(1ull << 32, "q"), 0},
                                 {Stream(1, "q"), 1},
                                 {Stream(1, "q"), 4},
                                 {Stream(1, "q"), 64}})
    EXPECT_LT(std::fabs(correlation(a, b, static_cast<std::uint64_t>(shift))), 5.0 / 256);
}

}  // namespace
}  // namespace numgate
