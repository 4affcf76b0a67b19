// The truth of every stage against the definition read naively in MPFR at 513 bits and in
// intervals.
#include <gtest/gtest.h>

#include "core/errors.h"
#include "oracles/scalars/interval.h"
#include "oracles/tests/truth_reference.h"

namespace numgate {
namespace {

const char* const kCases[][2] = {
    {"kda.l2norm", "T=9,H=3"},
    {"kda.gate", "T=5,H=1,HV=3"},
    {"kda.gate", "T=5,H=1,HV=3,gate=plain"},
    {"kda.beta", "T=70,H=1,HV=3"},
    {"kda.conv", "T=13,H=1"},
    {"kda.conv", "T=13,H=1,cuts=1+3+8"},
    {"kda.conv", "T=2,H=1"},
    {"kda.out_norm", "T=9,H=1,HV=2,K=64,V=128"},
    {"kda.prefill", "T=70,H=1"},
    {"kda.prefill", "T=20,H=2,HV=4,K=64,V=128,gate=plain,state0=random"},
    {"kda.prefill", "T=45,H=1,HV=2,state0=random,cuts=1+34"},
    {"kda.core", "T=33,H=1,HV=2,K=64,V=128,state0=random"},
    {"kda.core", "T=40,H=2,state0=random,cuts=7"},
    {"kda.summary", "T=35,H=1,HV=2,K=64,V=128"},
    {"kda.merge", "T=3,H=1,HV=2,K=64,V=128,state0=random"},
};

bool is_recurrence(std::string_view stage) {
  return stage == "kda.prefill" || stage == "kda.core" || stage == "kda.summary";
}

class EveryStage
    : public ::testing::TestWithParam<std::tuple<const char* const (*)[2], TruthDevice>> {};

TEST_P(EveryStage, AgreesWithMpfrAndItsRadiusHolds) {
  const auto [words, device] = GetParam();
  const Case c = test_case((*words)[0], (*words)[1]);
  const TensorMap inputs = random_inputs(c);
  TruthOptions options;
  options.keep_low = true;
  options.device = device;
  Truth truth;
  try {
    truth = compute_truth(c, inputs, options);
  } catch (const UsageError& e) {
    if (device == TruthDevice::cpu) throw;
    GTEST_SKIP() << e.what();
  }
  const auto exact = naive<Mpfr512>(c, inputs);
  ASSERT_EQ(truth.outputs.size(), stage(c.stage).outputs.size());
  for (const TensorSpec& spec : stage(c.stage).outputs) {
    const std::string name(spec.name);
    const TruthTensor& t = truth.outputs.at(name);
    const auto& e = exact.at(name);
    EXPECT_EQ(t.shape, tensor_shape(spec, c.shape)) << name;
    ASSERT_EQ(t.hi.size(), e.size()) << name;
    ASSERT_EQ(t.lo.size(), e.size()) << name;
    ASSERT_EQ(t.radius.size() * static_cast<std::size_t>(t.shape.back()), e.size()) << name;
    double largest = 0, worst = 0, widest = 0;
    for (std::size_t i = 0; i < e.size(); ++i) {
      const double error =
          std::abs(to_double(Mpfr512(exactly<Mpfr512>({t.hi[i], t.lo[i]}) - e[i])));
      const double radius = t.radius[i / static_cast<std::size_t>(t.shape.back())];
      EXPECT_LE(error, radius) << name << " " << i;
      largest = std::max(largest, std::abs(t.hi[i]));
      worst = std::max(worst, error);
      widest = std::max(widest, radius);
    }
    EXPECT_GT(largest, 0) << name;
    EXPECT_LE(worst, largest * 0x1p-95) << name;
    EXPECT_LE(widest, largest * 0x1p-80) << name << ": the certificate is useless";
  }
  EXPECT_LT(truth.audit.worst_log2, -85);
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryStage, ::testing::ValuesIn([] {
                           std::vector<std::tuple<const char* const(*)[2], TruthDevice>> all;
                           for (const auto& c : kCases) {
                             all.emplace_back(&c, TruthDevice::cpu);
                             if (is_recurrence(c[0])) all.emplace_back(&c, TruthDevice::cuda);
                           }
                           return all;
                         }()));

TEST(TruthInIntervals, ScalarStagesAndShortRecurrences) {
  for (const auto& [name, shape] : std::vector<std::pair<std::string, std::string>>{
           {"kda.l2norm", "T=3,H=1"},
           {"kda.gate", "T=3,H=1"},
           {"kda.gate", "T=3,H=1,gate=plain"},
           {"kda.beta", "T=9,H=1"},
           {"kda.conv", "T=6,H=1"},
           {"kda.out_norm", "T=3,H=1"},
           {"kda.prefill", "T=32,H=1"},
           {"kda.core", "T=32,H=1,K=64,V=128,state0=random"}}) {
    const Case c = test_case(name, shape);
    const TensorMap inputs = random_inputs(c, 5);
    TruthOptions options;
    options.keep_low = true;
    const Truth truth = compute_truth(c, inputs, options);
    for (const auto& [tensor, intervals] : naive<Interval>(c, inputs)) {
      const TruthTensor& t = truth.outputs.at(tensor);
      for (std::size_t i = 0; i < intervals.size(); ++i) {
        const double radius = t.radius[i / static_cast<std::size_t>(t.shape.back())];
        ASSERT_TRUE(contains(intervals[i], {t.hi[i], t.lo[i]}, radius))
            << name << " " << tensor << " " << i;
        // The interval itself must be narrow, or containment says nothing.
        ASSERT_LE(width(intervals[i]), 0x1p-110) << name << " " << tensor << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace numgate
