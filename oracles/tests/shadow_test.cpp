// The shadow explains a kernel that does what its plan declares, and nothing more.
#include "oracles/shadow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/errors.h"
#include "core/windows.h"
#include "oracles/shadow/rounding.h"
#include "oracles/shadow/shadow_sites.h"
#include "oracles/truth.h"

namespace numgate {
namespace {

// Inputs of kda.core for one head, each built for one mechanism.
TensorMap inputs_of(const Case& c) {
  const std::int64_t T = c.shape.T, K = c.shape.K, V = c.shape.V;
  std::mt19937_64 bits(c.seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  TensorMap in;
  const auto tensor = [&](const char* name, std::vector<std::int64_t> shape) {
    return in.emplace(name, Tensor(Dtype::f32, std::move(shape))).first->second.as<float>();
  };
  float *q = tensor("qhat", {T, 1, K}), *k = tensor("khat", {T, 1, K}), *v = tensor("v", {T, 1, V});
  float *g = tensor("g", {T, 1, K}), *beta = tensor("beta", {T, 1});
  std::vector<double> slow(static_cast<std::size_t>(K));
  for (double& x : slow) x = -1e-8 * std::pow(1e3, uniform(bits));
  for (std::int64_t t = 0; t < T; ++t) {
    double kk = 1e-6, qq = 1e-6;
    std::vector<double> x(slow), y(slow);
    for (std::int64_t d = 0; d < K; ++d) {
      x[d] = c.family == "near_collinear" ? 1 + 1e-3 * normal(bits) : normal(bits);
      if (c.family == "needle" && t >= T / 4 && d >= K / 4) x[d] = 0;
      y[d] = normal(bits);
      kk += x[d] * x[d];
      qq += y[d] * y[d];
      g[t * K + d] =
          static_cast<float>(c.family == "needle"           ? slow[d]
                             : c.family == "slow_decay"     ? -1e-4
                             : c.family == "near_collinear" ? -1e-3
                                                            : -std::log1p(std::exp(-normal(bits))));
    }
    for (std::int64_t d = 0; d < K; ++d) {
      k[t * K + d] = static_cast<float>(x[d] / std::sqrt(kk));
      q[t * K + d] = static_cast<float>(y[d] / std::sqrt(qq * static_cast<double>(K)));
    }
    for (std::int64_t d = 0; d < V; ++d) v[t * V + d] = static_cast<float>(normal(bits));
    beta[t] =
        static_cast<float>(c.family == "slow_decay"       ? 2.5e-3
                           : c.family == "near_collinear" ? 0.98
                                                          : 1 / (1 + std::exp(-normal(bits))));
  }
  return in;
}

struct Scores {
  double lowest = 1e300, highest = 0;
};

// Scores of the emulated kernel over the windows of one tensor.
Scores scores_of(const std::vector<WindowKey>& keys, const Tensor& kernel, const TruthTensor& truth,
                 const TensorShadow& shadow, std::int64_t width) {
  Scores s;
  EXPECT_EQ(keys.size(), shadow.windows.size());
  for (std::size_t w = 0; w < keys.size(); ++w) {
    const bool whole = keys[w].begin == keys[w].end;
    const std::int64_t begin = whole ? 0 : keys[w].begin * width,
                       end = whole ? kernel.size() : keys[w].end * width;
    double squares = 0, explained = 0;
    for (std::int64_t i = begin; i < end; ++i) squares += std::pow(kernel.at(i) - truth.hi[i], 2);
    for (const auto& mode : shadow.windows[w].squares) {
      double mean = 0;
      for (int draw = 0; draw < shadow.draws; ++draw) mean += mode[draw] / shadow.draws;
      explained = std::max(explained, mean);
    }
    s.lowest = std::min(s.lowest, std::sqrt(squares / explained));
    s.highest = std::max(s.highest, std::sqrt(squares / explained));
  }
  return s;
}

struct Measured {
  Scores o, state;
};

Measured measure(const std::string& id) {
  const Case c = parse_case(id);
  const TensorMap inputs = inputs_of(c);
  const Truth truth = compute_truth(c, inputs);
  const auto shadow = compute_shadow(c, c.plan.declared, inputs, truth, {});
  const TensorMap kernel = compute_emulation(c, c.plan.ran, inputs);
  return {scores_of(token_windows(c, 1), kernel.at("o"), truth.outputs.at("o"), shadow.at("o"),
                    c.shape.V),
          scores_of(state_windows(c, 1), kernel.at("state"), truth.outputs.at("state"),
                    shadow.at("state"), 0)};
}

class Explains : public testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {
};

TEST_P(Explains, AKernelThatDoesWhatItsPlanDeclares) {
  const auto [schedule, plan, family] = GetParam();
  const Measured m = measure(std::string("kda.core/") + schedule + "/" + plan + "/" + family +
                             "/T=1024,K=64/seed=7");
  EXPECT_GT(m.o.lowest, 0.3);
  EXPECT_LT(m.o.highest, 2);
  EXPECT_GT(m.state.lowest, 0.2);
  EXPECT_LT(m.state.highest, 2);
}

INSTANTIATE_TEST_SUITE_P(Families, Explains,
                         testing::Combine(testing::Values("sequential", "cp8"),
                                          testing::Values("reference", "production"),
                                          testing::Values("gaussian", "needle", "slow_decay",
                                                          "near_collinear")));
INSTANTIATE_TEST_SUITE_P(Schedules, Explains,
                         testing::Combine(testing::Values("decode", "replay@16", "chunked@100"),
                                          testing::Values("reference"), testing::Values("needle")));
INSTANTIATE_TEST_SUITE_P(
    Formats, Explains,
    testing::Combine(testing::Values("cp8"),
                     testing::Values("tf32", "reference+merge.dot=tf32", "reference+ws.dot=tf32rna",
                                     "reference+kv.dot=bf16x3", "reference+w.dot=tf32x3", "tf32x3",
                                     "reference+summary.chain=diag_tf32x3",
                                     "reference+h.store=fp16", "reference+state=bf16"),
                     testing::Values("needle")));

TEST(Shadow, ExplainsTheOtherStages) {
  for (const char* id : {"kda.l2norm/sequential/reference/x/T=192,K=64/seed=1",
                         "kda.gate/sequential/reference/x/T=192,K=64/seed=1",
                         "kda.gate/sequential/reference/x/T=192,K=64,gate=plain/seed=1",
                         "kda.gate/sequential/reference+gate=bf16/x/T=192,K=64/seed=1",
                         "kda.beta/sequential/reference/x/T=192,HV=4,K=64/seed=1",
                         "kda.conv/cp2/reference/x/T=192,K=64/seed=1",
                         "kda.out_norm/sequential/reference/x/T=192,K=64/seed=1",
                         "kda.summary/sequential/production/x/T=192,K=64/seed=1",
                         "kda.merge/sequential/tf32/x/T=5,K=64,state0=random/seed=1",
                         "kda.prefill/sequential/reference/x/T=192,K=64,V=128/seed=1",
                         "kda.prefill/sequential/production/x/T=192,K=64,gate=plain/seed=1"}) {
    const Case c = parse_case(id);
    std::mt19937_64 bits(c.seed);
    std::normal_distribution<float> normal;
    TensorMap inputs;
    for (const auto& spec : stage(c.stage).inputs) {
      Tensor& t =
          inputs.emplace(spec.name, Tensor(Dtype::f32, tensor_shape(spec, c.shape))).first->second;
      for (std::int64_t i = 0; i < t.size(); ++i) {
        const float x = normal(bits);
        t.as<float>()[i] = spec.name == "g"                          ? -std::abs(x) / 8
                           : spec.name == "beta"                     ? 1 / (1 + std::exp(x))
                           : spec.name == "khat" || spec.name == "M" ? x / 8
                                                                     : x;
      }
    }
    const Truth truth = compute_truth(c, inputs);
    const TensorMap kernel = compute_emulation(c, c.plan.ran, inputs);
    for (const auto& [name, shadow] : compute_shadow(c, c.plan.declared, inputs, truth, {})) {
      const Tensor& t = kernel.at(name);
      const bool by_token = !shadow.row_max[0].empty();
      const auto s = scores_of(
          by_token ? token_windows(c, 1) : std::vector<WindowKey>{{0, c.shape.T, c.shape.T, 0}}, t,
          truth.outputs.at(name), shadow, t.size() / c.shape.T);
      EXPECT_GT(s.lowest, 0.2) << id << " " << name;
      EXPECT_LT(s.highest, 2) << id << " " << name;
    }
  }
}

TEST(Shadow, DoesNotExplainAMergeInTf32) {
  const std::string rest = "/needle/T=1024,K=64/seed=7";
  EXPECT_GT(measure("kda.core/cp8/reference:reference+merge.dot=tf32" + rest).o.highest, 50);
  EXPECT_GT(measure("kda.core/cp8/reference:reference+summary.chain=tf32" + rest).o.highest, 50);
}

TEST(Shadow, DoesNotDependOnThreadsAndDrawsDiffer) {
  const Case c = parse_case("kda.core/cp2/production/gaussian/T=130,K=64/seed=3");
  const TensorMap inputs = inputs_of(c);
  const Truth truth = compute_truth(c, inputs);
  const auto one = compute_shadow(c, c.plan.declared, inputs, truth, {.draws = 4, .threads = 1});
  const auto two = compute_shadow(c, c.plan.declared, inputs, truth, {.draws = 4, .threads = 2});
  ASSERT_EQ(one.size(), 3u);
  for (const auto& [name, shadow] : one) {
    const auto& again = two.at(name);
    for (std::size_t w = 0; w < shadow.windows.size(); ++w) {
      EXPECT_EQ(shadow.windows[w].squares, again.windows[w].squares) << name;
      for (const auto& mode : shadow.windows[w].squares) EXPECT_NE(mode[0], mode[1]) << name;
    }
    EXPECT_EQ(shadow.row_max, again.row_max) << name;
    EXPECT_EQ(shadow.row_null, again.row_null) << name;
  }
  EXPECT_EQ(one.at("o").row_max[0].size(), 130u);
  EXPECT_GT(one.at("o").row_null, 1);
  EXPECT_THROW(compute_shadow(c, c.plan.declared, inputs, truth, {.draws = 1}), UsageError);
}

TEST(Shadow, SharesNameTheSitesThatRound) {
  const Case c =
      parse_case("kda.core/sequential/reference+kg.store=bf16/gaussian/T=128,K=64/seed=3");
  const TensorMap inputs = inputs_of(c);
  const auto shares =
      site_shares(c, c.plan.declared, inputs, compute_truth(c, inputs), {.draws = 16});
  ASSERT_FALSE(shares.empty());
  EXPECT_EQ(shares.front().site, Site::kg_store);
  EXPECT_NEAR(shares.front().share, 1, 0.3);
  for (const auto& s : shares) EXPECT_NE(s.site, Site::merge_dot);
}

// Mode I: uniform within half an ulp, variance ulp^2 / 12. Mode D: within half an ulp, on a grid.
TEST(Rounding, HasTheErrorOfItsFormat) {
  using namespace shadow;
  std::mt19937_64 bits(1);
  std::uniform_real_distribution<double> uniform(1, 2);
  for (const Format f : {Format::ieee, Format::bf16, Format::fp16, Format::tf32rna}) {
    const double ulp = std::ldexp(1.0, -info(f).fraction_bits);
    for (const Reading reading : {Reading::independent, Reading::dithered}) {
      Random random(5);
      std::vector<double> x(100'003), y;
      for (double& value : x) value = uniform(bits);
      y = x;
      round_to(info(f), reading, y.data(), y.size(), 0.3125, 1, random);
      double mean = 0, square = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double e = (y[i] - x[i]) / ulp;
        EXPECT_LE(std::abs(e), 0.5 + 1e-9);
        if (reading == Reading::dithered) {
          EXPECT_NEAR(std::remainder(y[i] / ulp + 0.3125, 1), 0, 1e-6);
        }
        mean += e / static_cast<double>(x.size());
        square += e * e / static_cast<double>(x.size());
      }
      EXPECT_NEAR(mean, 0, 0.005);
      EXPECT_NEAR(square * 12, 1, 0.02);
    }
  }
}

TEST(Rounding, KeepsWhatIsOnTheGridAndKnowsTheRange) {
  using namespace shadow;
  Random random(5);
  for (const Reading reading : {Reading::independent, Reading::dithered}) {
    std::vector<double> exact{0, 1, -1.5, 0x1p-24, 65504};
    const auto before = exact;
    round_to(info(Format::fp16), reading, exact.data(), exact.size(), 0.3, 1, random);
    EXPECT_EQ(exact, before);
    std::vector<double> over{65530, -1e6};
    round_to(info(Format::fp16), reading, over.data(), over.size(), 0.3, 1, random);
    EXPECT_EQ(over, (std::vector<double>{HUGE_VAL, -HUGE_VAL}));
    std::vector<double> tiny{0x1.8p-25};  // a subnormal's ulp is 2^-24
    round_to(info(Format::fp16), reading, tiny.data(), tiny.size(), 0.3, 1, random);
    EXPECT_LE(std::abs(tiny[0] - 0x1.8p-25), 0x1p-25);
    EXPECT_NE(tiny[0], 0x1.8p-25);
  }
  std::vector<double> cut{1 + 0x1.fp-10, -1 - 0x1.fp-10};
  round_to(info(Format::tf32), Reading::independent, cut.data(), cut.size(), 0.3, 1, random);
  EXPECT_EQ(cut, (std::vector<double>{1 + 0x1p-10, -1 - 0x1p-10}));
}

// With hardware rounding the dots are the units' own: one fma chain, one tensor-core step.
TEST(Dot, FollowsItsUnit) {
  using M = forms::Matrix<double>;
  Plan plan = parse_plan("reference");
  plan[Site::ws_dot] = Format::bf16;
  shadow::ShadowSites sites(plan, {.emulate = true});
  std::mt19937_64 bits(1);
  std::normal_distribution<float> normal;
  M a(5, 37), b(37, 19), c = M::Zero(5, 19);
  for (auto* m : {&a, &b})
    for (auto i = 0; i < m->size(); ++i) m->data()[i] = normal(bits);
  sites.dot(Site::qs_dot, {a}, {b}, c);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 19; ++j) {
      float chain = 0;
      for (int k = 0; k < 37; ++k)
        chain = std::fmaf(static_cast<float>(a(i, k)), static_cast<float>(b(k, j)), chain);
      EXPECT_EQ(c(i, j), chain);
    }
  // NUMERICS 2: c = 2^23, products -2^23 - 0.5 - 0.25 - 0.125 leave -0.75 on Hopper.
  M row = M::Zero(1, 16), ones = M::Ones(16, 1), sum = M::Constant(1, 1, 0x1p23);
  row.leftCols(4) << -0x1p23, -0.5, -0.25, -0.125;
  sites.dot(Site::ws_dot, {row}, {ones}, sum);
  EXPECT_EQ(sum(0, 0), -0.75);
  // The store truncates: 2^24 + 1 + 1 + ... in steps of sixteen ones is exact, in steps of one it
  // never grows.
  M one = M::Zero(1, 32), start = M::Constant(1, 1, 0x1p24);
  one(0, 0) = one(0, 16) = 1;
  sites.dot(Site::ws_dot, {one}, {M::Ones(32, 1)}, start);
  EXPECT_EQ(start(0, 0), 0x1p24);
}

}  // namespace
}  // namespace numgate
