// Slopes of constructed power laws, their intervals, projections and ladders.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/judge.h"
#include "reports/report.h"
#include "reports/slope.h"
#include "reports/tests/evidence.h"

namespace numgate {
namespace {

// o scores a t^s, t the end of the window.
CellEvidence power_law(double a, double s, std::int64_t T) {
  CellEvidence evidence = healthy(
      "kda.prefill/sequential/production:tf32/needle/T=" + std::to_string(T) + ",H=1/seed=1");
  evidence.tensors[0] = sequence_profile(evidence.c, 1, [=](const WindowKey& key) {
    return a * std::pow(static_cast<double>(key.end), s);
  });
  return evidence;
}

std::optional<Slope> growth(double a, double s, std::int64_t T) {
  return judge(power_law(a, s, T), default_policy()).growth.position;
}

TEST(Growth, PowerLaws) {
  EXPECT_NEAR(growth(1, 0, 8192)->value, 0, 1e-9);
  EXPECT_NEAR(growth(1, 0.5, 8192)->value, 0.5, 1e-9);
  EXPECT_NEAR(growth(1, 1, 8192)->value, 1, 1e-9);
  EXPECT_NEAR(growth(1, 1, 8192)->at_end, 8192, 1e-6);
  EXPECT_EQ(growth(1, 1, 8192)->end, 8192);
}

TEST(Growth, ClippedAtOne) {
  // Improving from 1/16 to 1/2 is no growth.
  EXPECT_NEAR(growth(0.5 / 8192, 1, 8192)->value, 0, 1e-12);
  // From 1 to 2 over the last octave alone: log2 of the values is 0 0 0 1 over x = 0 1 2 3.
  EXPECT_NEAR(growth(2.0 / 8192, 1, 8192)->value, 0.3, 1e-9);
}

TEST(Growth, NeedsThreeOctavesOfWindows) {
  EXPECT_TRUE(growth(1, 1, 512));
  EXPECT_FALSE(growth(1, 1, 448));
}

TEST(Growth, WindowsNearestBelow) {
  // Windows end at 64, 128, ..., 960, 1000; halves of 1000 at 500, 250 and 125 fall back to 448,
  // 192 and 64.
  CellEvidence evidence = power_law(1, 0, 1000);
  for (std::size_t i = 0; i < evidence.tensors[0].keys.size(); ++i) {
    const std::int64_t end = evidence.tensors[0].keys[i].end;
    const bool used = end == 1000 || end == 448 || end == 192 || end == 64;
    if (!used) evidence.tensors[0].kernel.squares[i] *= 1.9;
  }
  EXPECT_NEAR(judge(evidence, default_policy()).growth.position->value, 0, 1e-9);
}

TEST(Growth, IntervalByBruteForce) {
  // Null slopes 0.1 and -0.1 exactly, of two draws: t(1, 0.995) = 63.657, s = 0.1 sqrt 2.
  std::vector<FitPoint> points;
  for (const std::int64_t t : {64, 128, 256}) {
    const double x = static_cast<double>(t);
    points.push_back({t, x, {100 * std::pow(x, 0.1), 100 * std::pow(x, -0.1)}});
  }
  const Slope slope = *fit_slope(points, 1);
  EXPECT_NEAR(slope.value, 1, 1e-12);
  EXPECT_NEAR(slope.high - slope.value, 63.6567 * 0.1 * std::sqrt(2.0) * std::sqrt(1.5), 1e-3);
  EXPECT_NEAR(slope.value - slope.low, slope.high - slope.value, 1e-12);
}

TEST(Growth, RuleNeedsBothSlopeAndReach) {
  const auto fails = [](double a, double s, std::int64_t T, std::int64_t target) {
    Policy policy = default_policy();
    policy.target_context = target;
    return has_rule(judge(power_law(a, s, T), policy), "growth");
  };
  // Score 1 at 1024 growing to 1.99 and to 2.01 at the target.
  const double a = std::pow(1024, -0.5) * 8;
  EXPECT_TRUE(fails(a, 0.5, 1024, 1 << 20));
  EXPECT_FALSE(fails(1, 0.1, 1024, 1 << 30));
  // W = 1.9 at the end, growing as t^0.5: out of contract within 11 % more context.
  const double b = 1.9 / std::sqrt(8192.0);
  const double reach = std::pow(2 / 1.9, 1 / (growth(b, 0.5, 8192)->value));
  EXPECT_FALSE(fails(b, 0.5, 8192, static_cast<std::int64_t>(8192 * reach) - 1));
  EXPECT_TRUE(fails(b, 0.5, 8192, static_cast<std::int64_t>(8192 * reach) + 1));
}

TEST(Growth, RuleAtItsLowerBound) {
  Policy policy = default_policy();
  const CellEvidence evidence = power_law(1, 0.2, 8192);
  const double low = judge(evidence, policy).growth.position->low;
  policy.thresholds.growth = low;
  EXPECT_FALSE(has_rule(judge(evidence, policy), "growth"));
  policy.thresholds.growth = std::nextafter(low, 0);
  const Reason r = reason(judge(evidence, policy), "growth");
  EXPECT_EQ(r.measured, low);
  EXPECT_FALSE(r.sites.empty());
}

TEST(Growth, PackedSequencesAreContextsOfTheirOwn) {
  // Each of two sequences of 512 grows from its own first token.
  CellEvidence evidence =
      healthy("kda.prefill/sequential/production/needle/T=1024,H=1,cuts=512/seed=1");
  evidence.tensors[0] = sequence_profile(evidence.c, 1, [](const WindowKey& key) {
    return std::sqrt(static_cast<double>(key.end - (key.begin < 512 ? 0 : 512)));
  });
  const Slope slope = *judge(evidence, default_policy()).growth.position;
  EXPECT_NEAR(slope.value, 0.5, 1e-9);
  EXPECT_EQ(slope.end, 512);
}

TEST(Projection, OfTheErrorToTheTarget) {
  // Relative error of the whole, carried on with the lower bound of its slope.
  const CellEvidence evidence = power_law(1, 0.5, 4096);
  Policy policy = default_policy();
  policy.target_context = 4 * 4096;
  const CellResult cell = judge(evidence, policy);
  const Slope slope = *cell.error.slope;
  EXPECT_NEAR(slope.value, 0.5, 1e-9);
  EXPECT_NEAR(cell.error.projected, cell.error.relative * std::pow(4.0, slope.low), 1e-12);
  policy.target_context = 4096;
  EXPECT_EQ(judge(evidence, policy).error.projected, cell.error.relative);
  policy.target_context = std::int64_t{1} << 60;
  EXPECT_EQ(judge(evidence, policy).error.projected, 1);
}

TEST(Projection, OnlyOfASlopeAboveItsThreshold) {
  const CellResult flat = judge(power_law(1, 0.1, 4096), default_policy());
  EXPECT_EQ(flat.error.projected, flat.error.relative);
  Policy policy = default_policy();
  const CellEvidence evidence = power_law(1, 0.3, 4096);
  policy.thresholds.error_slope = judge(evidence, policy).error.slope->low;
  EXPECT_EQ(judge(evidence, policy).error.projected, judge(evidence, policy).error.relative);
  policy.thresholds.error_slope = std::nextafter(policy.thresholds.error_slope, 0);
  EXPECT_GT(judge(evidence, policy).error.projected, judge(evidence, policy).error.relative);
}

std::vector<CellResult> ladder(const std::vector<std::int64_t>& lengths, double slope) {
  std::vector<CellResult> cells;
  for (const std::int64_t T : lengths) {
    CellEvidence evidence = healthy(
        "kda.prefill/sequential/production:tf32/needle/T=" + std::to_string(T) + ",H=1/seed=1");
    evidence.tensors[1] = state_profile(
        evidence.c, 1,
        1.5 * std::pow(static_cast<double>(T) / static_cast<double>(lengths.back()), slope));
    cells.push_back(judge(evidence, default_policy()));
  }
  return cells;
}

TEST(Ladder, FinalStatesGiveGrowthByContext) {
  auto cells = ladder({512, 1024, 2048, 4096}, 0);
  judge_ladders(cells, default_policy());
  for (const CellResult& cell : cells) {
    ASSERT_TRUE(cell.growth.context);
    EXPECT_NEAR(cell.growth.context->value, 0, 1e-9);
    EXPECT_EQ(cell.verdict, Verdict::PASS);
  }
  cells = ladder({512, 1024, 2048}, 0.5);
  // log2 max(W, 1) over three octaves: 0, log2(1.5) - 0.5, log2(1.5)
  judge_ladders(cells, default_policy());
  for (const CellResult& cell : cells) {
    EXPECT_NEAR(cell.growth.context->value, std::log2(1.5) / 2, 1e-9);
    EXPECT_EQ(cell.verdict, Verdict::FAIL);
    EXPECT_EQ(reason(cell, "growth").tensor, "state");
  }
}

TEST(Ladder, NeedsThreeLengths) {
  auto cells = ladder({512, 1024}, 1);
  judge_ladders(cells, default_policy());
  EXPECT_FALSE(cells[0].growth.context);
  EXPECT_FALSE(growth_context({{64, 1, {1, 1}}, {128, 2, {1, 1}}}));
  EXPECT_FALSE(growth_context({{64, 1, {1}}, {128, 2, {1}}, {256, 4, {1}}}));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(growth_context({{64, 1, {1, 1}}, {128, 2, {1, 1}}, {256, inf, {1, 1}}}));
  EXPECT_NEAR(growth_context({{256, 4, {1, 1}}, {64, 1, {1, 1}}, {128, 2, {1, 1}}})->value, 1,
              1e-12);
}

}  // namespace
}  // namespace numgate
