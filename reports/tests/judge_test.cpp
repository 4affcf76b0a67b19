// Each rule of DESIGN 6 at, just below and just above its limit.
#include "reports/judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/score.h"
#include "reports/tests/evidence.h"

namespace numgate {
namespace {

const std::string kSequential = "kda.prefill/sequential/production/needle/T=512,H=1/seed=1";
const std::string kCp = "kda.prefill/cp4/production/needle/T=512,H=1/seed=1";
const std::string kFault = "kda.prefill/cp4/production:tf32/needle/T=512,H=1/seed=1";
constexpr double kAbove = 1 + 1e-6, kBelow = 1 - 1e-6;

CellResult judged(const CellEvidence& evidence) { return judge(evidence, default_policy()); }

// The healthy case with window `i` of o at score w.
CellResult with_window(std::size_t i, double w, const std::string& id = kSequential) {
  CellEvidence evidence = healthy(id);
  TensorProfile& o = evidence.tensors[0];
  o.kernel.squares[i] = mean_square(o.shadow.windows[i], o.shadow.draws) * w * w;
  return judged(evidence);
}

TEST(Judge, HealthyCellPasses) {
  for (const std::string& id : {kSequential, kCp}) {
    const CellResult cell = judged(healthy(id));
    EXPECT_EQ(cell.verdict, Verdict::PASS);
    EXPECT_TRUE(cell.reasons.empty());
    EXPECT_NEAR(cell.score.max, 1, 1e-12);
    EXPECT_NEAR(cell.error.relative, kShadowError, 1e-12);
    EXPECT_FALSE(cell.loose);
    EXPECT_EQ(cell.replay, "numgate replay '" + cell.c.id() + "'");
  }
}

TEST(Judge, ContractOfWindows) {
  EXPECT_EQ(with_window(5, 2 * kBelow).verdict, Verdict::PASS);
  const CellResult cell = with_window(5, 2 * kAbove);
  EXPECT_EQ(cell.verdict, Verdict::FAIL);
  ASSERT_EQ(cell.reasons.size(), 1u);
  EXPECT_EQ(cell.reasons[0].rule, "contract");
  EXPECT_EQ(cell.reasons[0].token, 320);
  EXPECT_EQ(cell.reasons[0].rank, 0);
  EXPECT_EQ(cell.reasons[0].limit, 2);
  EXPECT_NEAR(cell.reasons[0].measured, 2, 1e-5);
}

TEST(Judge, ContractNamesTheFirstWindowAndTheWorstScore) {
  CellEvidence evidence = healthy(kFault);
  evidence.tensors[0] = sequence_profile(evidence.c, 1, [](const WindowKey& key) {
    return key.begin < 256 ? 1.0 : 3 + static_cast<double>(key.rank);
  });
  add_control(evidence.tensors[0], 10, 1);
  const Reason& r = reason(judged(evidence), "contract");
  EXPECT_EQ(r.token, 256);
  EXPECT_EQ(r.rank, 2);
  EXPECT_NEAR(r.measured, 6, 1e-9);
  EXPECT_NE(std::find(r.sites.begin(), r.sites.end(), "summary.chain"), r.sites.end());
  EXPECT_NE(std::find(r.sites.begin(), r.sites.end(), "merge.dot"), r.sites.end());
}

TEST(Judge, ContractYieldsToTheSpreadOfTheNull) {
  CellEvidence evidence = healthy(kSequential);
  TensorProfile& o = evidence.tensors[0];
  o.shadow.windows[2].squares[1][3] = 400;  // one draw stands out
  const double null = std::sqrt(ratio(400, (mean_square(o.shadow.windows[2], 8) * 8 - 400) / 7));
  const auto verdict = [&](double w) {
    o.kernel.squares[6] = mean_square(o.shadow.windows[6], 8) * w * w;
    return judged(evidence).verdict;
  };
  EXPECT_GT(1.25 * null, 2);
  EXPECT_EQ(verdict(1.25 * null * kBelow), Verdict::PASS);
  EXPECT_EQ(verdict(1.25 * null * kAbove), Verdict::FAIL);
}

TEST(Judge, ContractOfTokens) {
  CellEvidence evidence = healthy(kSequential);
  float& row = evidence.tensors[0].kernel.row_max[417];
  row = 2;  // four times the larger mode's 0.5
  EXPECT_EQ(judged(evidence).verdict, Verdict::PASS);
  row = std::nextafterf(2, 3);
  const CellResult cell = judged(evidence);
  EXPECT_EQ(cell.verdict, Verdict::FAIL);
  EXPECT_EQ(cell.reasons.at(0).rule, "contract");
  EXPECT_EQ(cell.reasons.at(0).token, 417);
  EXPECT_EQ(cell.reasons.at(0).rank, 0);
  // 1.5 x 4 sqrt(ln 51200 / ln 1000) = 7.517 is above 4
  evidence.tensors[0].shadow.row_null = 4;
  EXPECT_EQ(judged(evidence).verdict, Verdict::PASS);
  row = 0.5f * 7.51f;
  EXPECT_EQ(judged(evidence).verdict, Verdict::PASS);
  row = 0.5f * 7.52f;
  EXPECT_EQ(judged(evidence).verdict, Verdict::FAIL);
}

// Of a hundred tensors of 8,192 rows the largest row is expected sqrt(ln 819200 / ln 1000)
// = 1.40397 times as far out as one of a thousand: the limit is 1.5 x 4 x 1.40397 = 8.424.
TEST(Judge, ContractOfTokensKnowsHowManyThereAre) {
  CellEvidence evidence =
      healthy("kda.prefill/sequential/production/needle/T=8192,H=1,K=64/seed=1");
  evidence.tensors[0].shadow.row_null = 4;
  float& row = evidence.tensors[0].kernel.row_max[417];
  row = 0.5f * 8.42f;
  EXPECT_EQ(judged(evidence).verdict, Verdict::PASS);
  row = 0.5f * 8.43f;
  EXPECT_EQ(judged(evidence).verdict, Verdict::FAIL);
}

TEST(Judge, ExcessTakesThePlaceOfScores) {
  CellEvidence evidence = healthy(kSequential);
  TensorProfile& o = evidence.tensors[0];
  for (double& square : o.kernel.squares) square *= 100;  // the cast
  o.kernel.row_excess.assign(512, 0);
  o.kernel.row_excess[100] = 6;
  EXPECT_EQ(judged(evidence).verdict, Verdict::PASS);
  o.kernel.row_excess[100] = std::nextafterf(6, 7);
  const CellResult cell = judged(evidence);
  EXPECT_EQ(cell.verdict, Verdict::FAIL);
  EXPECT_EQ(cell.reasons.at(0).token, 100);
  EXPECT_GT(cell.score.excess, 6);
}

TEST(Judge, ZeroOverZeroPassesAndAnythingOverZeroFails) {
  CellEvidence evidence = healthy(kSequential);
  TensorProfile& o = evidence.tensors[0];
  o.shadow.windows[3] = {};
  o.truth_squares[3] = 0;
  o.kernel.squares[3] = 0;
  EXPECT_EQ(judged(evidence).verdict, Verdict::PASS);
  o.kernel.squares[3] = 1e-300;
  EXPECT_TRUE(has_rule(judged(evidence), "contract"));
}

TEST(Judge, NaNNeverPasses) {
  CellEvidence evidence = healthy(kSequential);
  evidence.tensors[0].kernel.squares[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(has_rule(judged(evidence), "contract"));
  evidence = healthy(kSequential);
  evidence.tensors[0].kernel.row_max[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(has_rule(judged(evidence), "contract"));
  evidence = healthy(kSequential);
  evidence.tensors[0].shadow.windows[3].squares[1][0] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(judged(evidence).verdict, Verdict::NOT_VERIFIED);
}

TEST(Judge, Health) {
  CellEvidence evidence = healthy(kSequential);
  evidence.tensors[1].kernel.nonfinite = 1;
  EXPECT_EQ(judged(evidence).verdict, Verdict::FAIL);
  EXPECT_EQ(reason(judged(evidence), "health").tensor, "state");
  evidence = healthy(kSequential);
  evidence.health.failures = {"guard zone of o touched"};
  EXPECT_EQ(reason(judged(evidence), "health").text, "guard zone of o touched");
  evidence = {};
  evidence.c = parse_case(kSequential);
  evidence.health.ran = false;
  EXPECT_EQ(judged(evidence).verdict, Verdict::FAIL);
}

TEST(Judge, EquivalenceBitwise) {
  CellEvidence evidence = healthy("kda.prefill/tp2/production/needle/T=512,H=2/seed=1");
  EXPECT_EQ(judged(evidence).verdict, Verdict::PASS);
  evidence.tensors[1].differing_bits = 1;
  EXPECT_TRUE(has_rule(judged(evidence), "equivalence"));
}

TEST(Judge, EquivalenceUpToRounding) {
  // The denominator is the larger of the control's error (1 shadow) and the schedule's shadow
  // (0.25).
  const auto verdict = [](double w, double control, double shadow) {
    CellEvidence evidence = healthy(kCp);
    evidence.tensors[0] = sequence_profile(evidence.c, 1, [w](const WindowKey&) { return w; });
    add_control(evidence.tensors[0], control, shadow);
    return judged(evidence);
  };
  EXPECT_EQ(verdict(1, 0.5, 0.25).verdict, Verdict::PASS);
  const CellResult by_control = verdict(1.0001, 0.5, 0.25);
  EXPECT_EQ(by_control.verdict, Verdict::FAIL);
  ASSERT_EQ(by_control.reasons.size(), 1u);
  EXPECT_EQ(by_control.reasons[0].rule, "equivalence");
  EXPECT_EQ(verdict(0.9999, 0.25, 0.5).verdict, Verdict::PASS);
  EXPECT_TRUE(has_rule(verdict(1.0001, 0.25, 0.5), "equivalence"));
  // As declared, so the sites are those that only the schedule has and that do not run in ieee.
  EXPECT_EQ(by_control.reasons[0].sites, std::vector<std::string>{"summary.chain"});
}

TEST(Judge, EquivalenceNotComparedIsNotVerified) {
  CellEvidence evidence = healthy(kCp);
  for (TensorProfile& tensor : evidence.tensors) tensor.has_control = false;
  EXPECT_EQ(judged(evidence).verdict, Verdict::NOT_VERIFIED);
  evidence = healthy(kCp);
  evidence.tensors[0].schedule_shadow = {};  // production has sites of the schedule off ieee
  EXPECT_EQ(judged(evidence).verdict, Verdict::NOT_VERIFIED);
  evidence = healthy("kda.prefill/cp4/reference/needle/T=512,H=1/seed=1");
  evidence.tensors[0].schedule_shadow = {};  // here it is the shadow itself
  EXPECT_EQ(judged(evidence).verdict, Verdict::PASS);
}

// Error of every window a multiple of truth, explained in full.
CellResult with_error(double relative, const std::string& id) {
  CellEvidence evidence = healthy(id);
  for (TensorProfile& tensor : evidence.tensors)
    for (double& truth : tensor.truth_squares) truth *= std::pow(kShadowError / relative, 2);
  return judged(evidence);
}

TEST(Judge, AccuracyBudgets) {
  EXPECT_EQ(with_error(1e-2 * kBelow, kSequential).verdict, Verdict::PASS);
  const CellResult cell = with_error(1e-2 * kAbove, kSequential);
  EXPECT_EQ(cell.verdict, Verdict::FAIL);
  EXPECT_EQ(reason(cell, "accuracy").limit, 1e-2);
  EXPECT_TRUE(reason(cell, "accuracy").sites.empty());
  const std::string collinear = "kda.prefill/sequential/production/near_collinear/T=512,H=1/seed=1";
  EXPECT_EQ(with_error(1.25e-1 * kBelow, collinear).verdict, Verdict::PASS);
  EXPECT_TRUE(has_rule(with_error(1.25e-1 * kAbove, collinear), "accuracy"));
}

TEST(Judge, AccuracyOfTheWorstHeadAndRank) {
  CellEvidence evidence = healthy("kda.prefill/cp4/production/needle/T=512,H=2/seed=1");
  TensorProfile& o = evidence.tensors[0];
  for (std::size_t i = 0; i < o.keys.size(); ++i)
    if (o.keys[i].head == 1 && o.keys[i].rank == 3) o.truth_squares[i] *= 1e-5;
  const CellResult cell = judged(evidence);
  const Reason& r = reason(cell, "accuracy");
  EXPECT_EQ(r.head, 1);
  EXPECT_EQ(r.rank, 3);
  EXPECT_EQ(r.token, 384);
  EXPECT_NEAR(cell.error.relative, kShadowError * std::sqrt(1e5), 1e-9);
}

TEST(Judge, AFewPackedTokensAreNotHeldToTheBudgetBesideLongerSequences) {
  for (const auto& [id, fails] :
       {std::pair{"kda.prefill/varlen/production/gaussian/T=512,cuts=100+107/seed=1", false},
        {"kda.prefill/varlen/production/gaussian/T=512,cuts=100+108/seed=1", true},
        {"kda.prefill/sequential/production/gaussian/T=7/seed=1", true}}) {
    CellEvidence evidence = healthy(id);
    TensorProfile& o = evidence.tensors[0];
    for (std::size_t i = 0; i < o.keys.size(); ++i)
      if (o.keys[i].end - o.keys[i].begin <= 8) o.truth_squares[i] *= 1e-5;
    EXPECT_EQ(has_rule(judged(evidence), "accuracy"), fails) << id;
  }
}

TEST(Judge, AStateBlamesNoRankOfACut) {
  CellEvidence evidence = healthy(kCp);
  evidence.tensors[1] = state_profile(evidence.c, 1, 3);
  add_control(evidence.tensors[1], 3, 1);
  const Reason r = reason(judged(evidence), "contract");
  EXPECT_FALSE(r.rank);
  EXPECT_EQ(r.token, 512);
}

TEST(Judge, NothingComparedIsNotVerified) {
  CellEvidence evidence;
  evidence.c = parse_case(kSequential);
  EXPECT_EQ(judged(evidence).verdict, Verdict::NOT_VERIFIED);
  evidence.tensors.emplace_back();
  EXPECT_EQ(judged(evidence).verdict, Verdict::NOT_VERIFIED);
  evidence = healthy(kSequential);
  evidence.tensors[1].shadow.draws = 1;
  EXPECT_EQ(judged(evidence).verdict, Verdict::NOT_VERIFIED);
}

TEST(Judge, LivenessAndOracle) {
  CellEvidence evidence = healthy(kSequential);
  evidence.live = false;
  EXPECT_EQ(judged(evidence).verdict, Verdict::NOT_VERIFIED);
  evidence.health.failures = {"two runs differ"};
  EXPECT_EQ(judged(evidence).verdict, Verdict::FAIL);
  evidence.oracle_valid = false;
  EXPECT_EQ(judged(evidence).verdict, Verdict::ERROR);
  EXPECT_EQ(unjudged(evidence.c, "timeout", "60 s").verdict, Verdict::TIMEOUT);
}

TEST(Judge, Loose) {
  const auto loose = [](double o, double state) {
    CellEvidence evidence = healthy(kSequential);
    evidence.tensors = {sequence_profile(evidence.c, 1, [o](const WindowKey&) { return o; }),
                        state_profile(evidence.c, 1, state)};
    const CellResult cell = judged(evidence);
    EXPECT_EQ(cell.verdict, Verdict::PASS);
    return cell.loose;
  };
  EXPECT_TRUE(loose(0.2 * kBelow, 0.1));
  EXPECT_FALSE(loose(0.2 * kAbove, 0.1));
  EXPECT_FALSE(loose(0.1, 0.2 * kAbove));
}

TEST(Judge, NullByBruteForce) {
  CellEvidence evidence = healthy(kSequential);
  TensorProfile& o = evidence.tensors[0];
  std::vector<double> all;
  for (std::size_t i = 0; i < o.shadow.windows.size(); ++i) {
    auto& squares = o.shadow.windows[i].squares;
    for (int d = 0; d < 8; ++d) {
      squares[0][d] = std::pow(1.7, (d * 3 + static_cast<int>(i)) % 7);
      squares[1][d] = std::pow(1.3, (d * 5 + static_cast<int>(i)) % 9);
    }
    double sums[2] = {0, 0};
    for (int d = 0; d < 8; ++d) sums[0] += squares[0][d], sums[1] += squares[1][d];
    const auto& kept = squares[sums[1] > sums[0]];
    for (int d = 0; d < 8; ++d) {
      double others = 0;
      for (int e = 0; e < 8; ++e) others += e == d ? 0 : kept[e];
      all.push_back(std::sqrt(kept[d] * 7 / others));
    }
  }
  // Of 64 values the 99.9th percentile is the largest.
  EXPECT_NEAR(judged(evidence).tensors[0].score_null, *std::max_element(all.begin(), all.end()),
              1e-12);
}

TEST(Judge, PercentileIsTheSmallestValueThatCovers) {
  std::vector<double> values;
  for (int i = 2000; i > 0; --i) values.push_back(i);
  EXPECT_EQ(percentile_999(values), 1998);
  EXPECT_EQ(percentile_999({3}), 3);
  EXPECT_EQ(percentile_999({}), 0);
}

TEST(Judge, CurvesAreThinnedAndKeepTheWorst) {
  CellEvidence evidence = healthy("kda.prefill/sequential/production/needle/T=65536,H=1/seed=1");
  evidence.tensors[0] = sequence_profile(
      evidence.c, 1, [](const WindowKey& key) { return key.begin == 64 * 600 ? 1.9 : 1.0; });
  const CellResult cell = judged(evidence);
  const auto& points = cell.tensors.at(0).curves.at(0).points;
  EXPECT_LE(points.size(), 8u * 11);
  const auto worst = std::max_element(points.begin(), points.end(),
                                      [](auto& a, auto& b) { return a.score < b.score; });
  EXPECT_EQ(worst->token, 64 * 601);
  EXPECT_EQ(points.back().token, 65536);
  EXPECT_NEAR(points.back().shadow, kShadowError, 1e-12);
}

}  // namespace
}  // namespace numgate
