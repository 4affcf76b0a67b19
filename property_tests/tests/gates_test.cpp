// The decays that the raw inputs stand for, computed here in long double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "property_tests/families.h"

namespace numgate {
namespace {

// -g of every element of a kda.prefill case, [T, HV, K].
std::vector<double> decays(const std::string& family, const std::string& shape, Gate gate,
                           const char* in = "bf16") {
  const Case c =
      parse_case("kda.prefill/sequential/reference/" + family + "/" + shape + ",in=" + in +
                 ",gate=" + (gate == Gate::bounded ? "bounded" : "plain") + "/seed=42");
  const TensorMap raw = generate(c);
  std::vector<double> out;
  for (std::int64_t n = 0; n < raw.at("g_raw").size(); ++n) {
    const std::int64_t channel = n % (c.shape.HV * c.shape.K), head = channel / c.shape.K;
    const long double A = std::exp(static_cast<long double>(raw.at("A_log").at(head)));
    const long double x =
        static_cast<long double>(raw.at("g_raw").at(n)) + raw.at("dt_bias").at(channel);
    out.push_back(static_cast<double>(gate == Gate::bounded ? 5 / (1 + std::exp(-A * x))
                                                            : A * std::log1p(std::exp(x))));
  }
  return out;
}

class Gates : public testing::TestWithParam<Gate> {};

TEST_P(Gates, ConstantDecaysAreReached) {
  for (const auto& [family, want] : {std::pair{"slow_decay", 1e-4},
                                     {"near_collinear", 1e-3},
                                     {"strong_decay", 4.99},
                                     {"tiny", 1e-2},
                                     {"alternating_sign", 1e-3}})
    for (double d : decays(family, "T=4,H=2,HV=4", GetParam()))
      EXPECT_NEAR(d / want, 1, 1e-4) << family;
}

TEST_P(Gates, SpreadDecaysCoverTheirRangeInEveryHead) {
  for (const auto& [family, low, high] :
       {std::tuple{"needle", 1e-8, 1e-5}, {"mixed_decay", 1e-6, 1.0}}) {
    const auto all = decays(family, "T=2,H=2,K=128", GetParam());
    for (std::int64_t head = 0; head < 2; ++head) {
      std::vector<double> first(all.begin() + head * 128, all.begin() + (head + 1) * 128),
          sorted = first;
      EXPECT_TRUE(std::equal(first.begin(), first.end(),
                             all.begin() + (2 + head) * 128));  // constant in time
      std::sort(sorted.begin(), sorted.end());
      EXPECT_NE(first, sorted);
      for (std::size_t i = 0; i < 128; ++i)
        EXPECT_NEAR(sorted[i] / (low * std::pow(high / low, static_cast<double>(i) / 127)), 1, 1e-4)
            << family;
    }
    EXPECT_FALSE(std::equal(all.begin(), all.begin() + 128, all.begin() + 128))
        << family;  // heads differ
  }
}

TEST_P(Gates, LogSigmoidIsThatOfANormal) {
  const auto d = decays("log_sigmoid", "T=512", GetParam(), "f32");
  double below = 0, sum = 0;
  for (double x : d) below += x < std::log(2.0), sum += x;
  const auto n = static_cast<double>(d.size());
  EXPECT_NEAR(below / n, 0.5, 5 * 0.5 / std::sqrt(n));  // the median of softplus(normal)
  EXPECT_NEAR(sum / n, 0.80606, 5 * 0.53 / std::sqrt(n));
}

TEST_P(Gates, GaussianJittersAroundOnePercent) {
  auto d = decays("gaussian", "T=512", GetParam());
  std::nth_element(d.begin(), d.begin() + static_cast<std::ptrdiff_t>(d.size() / 2), d.end());
  EXPECT_NEAR(d[d.size() / 2], 1e-2, 2e-4);
  EXPECT_GT(*std::max_element(d.begin(), d.end()), 3e-2);
  EXPECT_LT(*std::max_element(d.begin(), d.end()), 0.2);
}

TEST_P(Gates, RaggedEndsShortTailsOnAStrongGate) {
  const auto d = decays("ragged", "T=22", GetParam());
  EXPECT_GT(d[21 * 64 + 1], 4.5);
  EXPECT_LT(d[21 * 64], 0.1);
  EXPECT_LT(d[20 * 64 + 1], 0.1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Gates, testing::Values(Gate::bounded, Gate::plain),
                         [](const auto& p) {
                           return p.param == Gate::bounded ? "bounded" : "plain";
                         });

TEST(Gates, FlaHeadsDifferAsInItsTest) {
  const auto in =
      generate(parse_case("kda.prefill/sequential/reference/fla_cp_test/T=256,H=8/seed=1"));
  for (std::int64_t h = 0; h < 8; ++h)
    EXPECT_NEAR(std::exp(in.at("A_log").at(h)), 1 + static_cast<double>(h), 1e-5);
  double k = 0, q = 0;
  for (std::int64_t i = 0; i < in.at("k").size(); ++i) k += in.at("k").at(i), q += in.at("q").at(i);
  EXPECT_NEAR(k / static_cast<double>(in.at("k").size()), -50, 0.2);
  EXPECT_NEAR(q / static_cast<double>(in.at("q").size()), 1, 0.02);
  for (std::int64_t i = 0; i < in.at("dt_bias").size(); ++i) {
    const double dt = std::log1p(std::exp(in.at("dt_bias").at(i)));
    EXPECT_TRUE(dt > 0.999e-3 && dt < 0.1001) << dt;
  }
}

TEST(Gates, SaturatedLogitsReachTheEndsAndTheSoftplusTail) {
  const auto in =
      generate(parse_case("kda.gate/sequential/reference/saturated/T=512,H=2,gate=plain/seed=1"));
  double low = 0, high = 0;
  for (std::int64_t t = 0; t < 512; ++t)
    for (std::int64_t i = 0; i < 64; ++i) {
      low = std::min(low, in.at("g_raw").at(t * 128 + i));
      high = std::max(high, in.at("g_raw").at(t * 128 + i));
      EXPECT_NEAR(in.at("g_raw").at(t * 128 + 64 + i), -18, 6);
    }
  EXPECT_LT(low, -103);
  EXPECT_GT(high, 103);
  EXPECT_NEAR(std::exp(in.at("A_log").at(1)), 1e6, 10);
}

}  // namespace
}  // namespace numgate
