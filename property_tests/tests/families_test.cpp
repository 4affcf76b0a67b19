#include "property_tests/families.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "core/errors.h"
#include "property_tests/random_stream.h"

namespace numgate {
namespace {

Case case_of(std::string_view stage, std::string_view family, const std::string& shape,
             int seed = 42) {
  return parse_case(std::string(stage) + "/sequential/reference/" + std::string(family) + "/" +
                    shape + "/seed=" + std::to_string(seed));
}

TEST(Families, EveryFamilyFillsEveryStageItClaims) {
  for (const auto& f : families())
    for (auto s : f.stages)
      for (const char* shape :
           {"T=70,H=2,HV=4,state0=random,gate=plain,in=f32", "T=33,V=128,cuts=1+16", "T=1"}) {
        if (s == "kda.merge" && shape != std::string_view("T=1")) shape = "T=3,H=2";
        const Case c = case_of(s, f.name, shape);
        const TensorMap inputs = generate(c);
        ASSERT_EQ(inputs.size(), stage(s).inputs.size());
        for (const auto& spec : stage(s).inputs) {
          const Tensor& t = inputs.at(std::string(spec.name));
          EXPECT_EQ(t.shape, tensor_shape(spec, c.shape)) << c.id() << " " << spec.name;
          EXPECT_EQ(t.dtype, tensor_dtype(spec, c.shape)) << c.id() << " " << spec.name;
          std::int64_t nonfinite = 0;
          for (std::int64_t i = 0; i < t.size(); ++i) nonfinite += !std::isfinite(t.at(i));
          EXPECT_EQ(nonfinite, 0) << c.id() << " " << spec.name;
        }
      }
}

TEST(Families, AreRefusedWhereTheyDoNotApply) {
  EXPECT_THROW(generate(case_of("kda.prefill", "zero_beta", "T=4")), UsageError);
  EXPECT_THROW(generate(case_of("kda.prefill", "needles", "T=4")), UsageError);
  EXPECT_THROW(generate(case_of("kda.beta", "gaussian", "T=4"), "q", {0, 4}), UsageError);
}

TEST(Families, BitsDependOnSeedTensorAndIndexAlone) {
  const int threads = omp_get_max_threads();
  for (const auto& f : families())
    for (auto s : f.stages) {
      const std::string shape =
          s == "kda.merge" ? "T=4,state0=random" : "T=200,H=2,HV=4,state0=random";
      const Case c = case_of(s, f.name, shape);
      omp_set_num_threads(1);
      const TensorMap one = generate(c);
      omp_set_num_threads(5);
      const TensorMap five = generate(c);
      for (const auto& [name, tensor] : one) {
        EXPECT_EQ(tensor.bytes, five.at(name).bytes) << c.id() << " " << name;
        if (!stage(s).inputs.empty() && tensor.shape[0] != c.shape.T) continue;
        const Tensor part = generate(c, name, {1, 3});
        const auto row = tensor.bytes.size() / static_cast<std::size_t>(c.shape.T);
        EXPECT_EQ(std::memcmp(part.bytes.data(), tensor.bytes.data() + row, 2 * row), 0)
            << c.id() << " " << name;
      }
    }
  omp_set_num_threads(threads);
}

// A longer case continues a shorter one; `needle` from 4096 tokens on, where its burst no longer
// grows.
TEST(Families, LongerCasesContinueShorterOnes) {
  for (const auto& f : families()) {
    if (!f.applies_to("kda.core") || f.name == "needle") continue;
    const auto shorter = generate(case_of("kda.core", f.name, "T=100,H=2"));
    const auto longer = generate(case_of("kda.core", f.name, "T=333,H=2"));
    for (const auto& [name, tensor] : shorter)
      EXPECT_EQ(std::memcmp(tensor.bytes.data(), longer.at(name).bytes.data(), tensor.bytes.size()),
                0)
          << f.name << " " << name;
  }
  const auto a = generate(case_of("kda.core", "needle", "T=4096"), "khat", {900, 1300});
  EXPECT_EQ(a.bytes, generate(case_of("kda.core", "needle", "T=16384"), "khat", {900, 1300}).bytes);
}

TEST(Families, SeedsDiffer) {
  EXPECT_NE(generate(case_of("kda.prefill", "gaussian", "T=8", 1)).at("q").bytes,
            generate(case_of("kda.prefill", "gaussian", "T=8", 2)).at("q").bytes);
}

TEST(Families, CoreHoldsThePreparedInputsOfPrefill) {
  const Case raw = case_of("kda.prefill", "fla_cp_test", "T=50,H=2,HV=4"),
             core = case_of("kda.core", "fla_cp_test", "T=50,H=2,HV=4");
  const TensorMap in = generate(raw), out = generate(core);
  EXPECT_EQ(in.at("v").bytes, out.at("v").bytes);
  for (const auto& [from, to, scale] : {std::tuple{"k", "khat", 1.0L}, {"q", "qhat", 1 / 8.0L}})
    for (std::int64_t row = 0; row < 100; ++row) {
      long double squares = 1e-6L;
      for (std::int64_t i = 0; i < 64; ++i)
        squares += std::pow(static_cast<long double>(in.at(from).at(row * 64 + i)), 2);
      for (std::int64_t i = 0; i < 64; ++i)
        EXPECT_FLOAT_EQ(
            static_cast<float>(out.at(to).at(row * 64 + i)),
            static_cast<float>(in.at(from).at(row * 64 + i) / std::sqrt(squares) * scale));
    }
  for (std::int64_t i = 0; i < 200; ++i)
    EXPECT_FLOAT_EQ(static_cast<float>(out.at("beta").at(i)),
                    1 / (1 + std::exp(-static_cast<float>(in.at("beta_raw").at(i)))));
}

TEST(Families, NeedleLeavesThreeQuartersOfTheChannelsAloneAfterItsBurst) {
  const auto k = generate(case_of("kda.prefill", "needle", "T=400,H=2,K=128,cuts=40"));
  const auto energy = [&](std::int64_t t) {
    double sum = 0;
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t i = 32; i < 128; ++i) sum += std::fabs(k.at("k").at((t * 2 + h) * 128 + i));
    return sum;
  };
  for (std::int64_t t = 0; t < 400; ++t)  // sequences of 40 and 360 tokens, bursts of 10 and 90
    EXPECT_EQ(energy(t) > 0, t < 10 || (t >= 40 && t < 130)) << t;
}

TEST(Families, AlternatingSignTakesBackWhatItWrote) {
  const auto in = generate(case_of("kda.core", "alternating_sign", "T=64"));
  double written = 0, left = 0;  // of one channel, decay left aside
  for (std::int64_t t = 0; t < 64; t += 2) {
    const auto at = [&](const char* name, std::int64_t token) {
      return in.at(name).at(token * 64 + 7);
    };
    EXPECT_EQ(at("khat", t), at("khat", t + 1));
    const double first = in.at("beta").at(t) * at("v", t);  // khat^T of the write is 1
    written += std::fabs(first);
    left += std::fabs(first + in.at("beta").at(t + 1) * (at("v", t + 1) - first));
  }
  // What is left is beta = 1/3 of half a fresh value: a third of the write of beta = 1/2.
  EXPECT_GT(left, 0.2 * written);
  EXPECT_LT(left, 0.5 * written);
  EXPECT_GT(written, 1);
}

TEST(Families, ExactIntegersNeedFewBits) {
  const auto in = generate(case_of("kda.core", "exact_integers", "T=512,K=128,state0=random"));
  std::int64_t ones = 0;
  for (std::int64_t t = 0; t < 512; ++t) {
    double key = 0, query = 0;
    for (std::int64_t i = 0; i < 128; ++i) {
      const double k = in.at("khat").at(t * 128 + i), q = in.at("qhat").at(t * 128 + i),
                   v = in.at("v").at(t * 128 + i);
      EXPECT_TRUE(k == 0 || k == 1);
      EXPECT_TRUE(q == 0 || std::fabs(q) == 0.125 || std::fabs(q) == 0.25);
      EXPECT_TRUE(v == std::nearbyint(v) && std::fabs(v) <= 7);
      EXPECT_EQ(in.at("g").at(t * 128 + i), 0);
      key += k, query += q != 0;
    }
    EXPECT_EQ(key, 1);
    EXPECT_LE(query, 4);
    ones += in.at("beta").at(t) == 1;
  }
  EXPECT_NEAR(static_cast<double>(ones), 384, 60);
}

TEST(Families, NearCollinearKeysSurviveBf16) {
  const auto in = generate(case_of("kda.prefill", "near_collinear", "T=256,K=128"));
  std::int64_t other = 0;
  for (std::int64_t i = 0; i < 256 * 128; ++i) {
    EXPECT_NEAR(in.at("k").at(i), 1, 0.01);
    other += in.at("k").at(i) != 1;
  }
  EXPECT_GT(other, 256);  // more than one channel a token differs
}

// Summaries compose: folding kda.merge's inputs gives the state of the kda.core case they were made
// from.
TEST(Families, MergeHoldsTheSummariesOfCoreSegments) {
  const std::int64_t K = 64, n = 3;
  const auto fold = generate(case_of("kda.merge", "gaussian", "T=3,state0=random"));
  const auto core = generate(case_of("kda.core", "gaussian", "T=192,state0=random"));
  std::vector<double> S(K * K), folded(K * K), next(K * K);
  for (std::int64_t i = 0; i < K * K; ++i) S[i] = folded[i] = core.at("state0").at(i);
  for (std::int64_t t = 0; t < 64 * n; ++t)
    for (std::int64_t j = 0; j < K; ++j) {
      double read = 0;
      for (std::int64_t i = 0; i < K; ++i) {
        S[i * K + j] *= std::exp(core.at("g").at(t * K + i));
        read += core.at("khat").at(t * K + i) * S[i * K + j];
      }
      const double u = core.at("beta").at(t) * (core.at("v").at(t * K + j) - read);
      for (std::int64_t i = 0; i < K; ++i) S[i * K + j] += core.at("khat").at(t * K + i) * u;
    }
  for (std::int64_t t = 0; t < n; ++t) {
    for (std::int64_t i = 0; i < K; ++i)
      for (std::int64_t j = 0; j < K; ++j) {
        double sum = fold.at("B").at((t * K + i) * K + j);
        for (std::int64_t m = 0; m < K; ++m)
          sum += fold.at("M").at((t * K + i) * K + m) * folded[m * K + j];
        next[i * K + j] = sum;
      }
    std::swap(folded, next);
  }
  for (std::int64_t i = 0; i < K * K; ++i) EXPECT_NEAR(folded[i], S[i], 1e-5);
}

}  // namespace
}  // namespace numgate
