// What short contexts predict for a long one: constructed power laws.
#include "reports/growth_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reports/judge.h"

namespace numgate {
namespace {

constexpr std::int64_t kTarget = 1048576;
// Student's t, 99 % two-sided, from a table.
constexpr double kT2 = 9.925, kT4 = 4.604;

// A cell whose error of the state is a T^s, with null draws that are powers of T themselves.
CellResult cell(std::int64_t T, double a, double s, std::uint64_t seed = 1) {
  CellResult out;
  out.c = parse_case("kda.prefill/cp8/production/needle/T=" + std::to_string(T) +
                     "/seed=" + std::to_string(seed));
  out.verdict = Verdict::PASS;
  TensorResult state;
  state.tensor = "state";
  const double t = static_cast<double>(T);
  state.error.relative = a * std::pow(t, s);
  for (const double slope : {-0.1, 0.0, 0.1}) state.error_null.push_back(std::pow(t, slope));
  out.tensors.push_back(std::move(state));
  return out;
}

Report ladder(double a, double s, std::vector<std::int64_t> lengths, int seeds = 1,
              double slope_step = 0) {
  Report report;
  report.policy = default_policy();
  report.policy.target_context = kTarget;
  for (int seed = 0; seed < seeds; ++seed)
    for (const std::int64_t T : lengths)
      report.cells.push_back(
          cell(T, a, s + slope_step * seed, static_cast<std::uint64_t>(seed + 1)));
  return report;
}

TEST(GrowthTable, ContinuesAPowerLaw) {
  const auto rows = growth_table(ladder(1e-4, 0.25, {4096, 16384, 65536, 262144, kTarget}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].tensor, "state");
  ASSERT_EQ(rows[0].errors.size(), 5u);
  EXPECT_NEAR(rows[0].errors[1].second, 1e-4 * std::pow(16384.0, 0.25), 1e-12);
  ASSERT_TRUE(rows[0].slope && rows[0].predicted && rows[0].measured);
  EXPECT_NEAR(rows[0].slope->value, 0.25, 1e-12);
  EXPECT_EQ(rows[0].slope->end, kFitUpTo);
  EXPECT_NEAR(rows[0].predicted->value, 1e-4 * 32, 1e-9);  // 2^20 to the 1/4
  EXPECT_NEAR(*rows[0].measured, 1e-4 * 32, 1e-9);
}

TEST(GrowthTable, IntervalsOfTheNullDraws) {
  // Slopes -0.1, 0, 0.1: standard deviation 0.1; one more like them spreads by sqrt(1 + 1/3).
  const double half = kT2 * 0.1 * std::sqrt(4.0 / 3);
  const auto open = growth_table(ladder(1e-4, 0, {4096, 16384, 65536}));
  ASSERT_EQ(open.size(), 1u);
  EXPECT_NEAR(open[0].slope->high - open[0].slope->value, half, 1e-3 * half);
  EXPECT_FALSE(open[0].measured);
  // The draws' lines reach the target at 2^20 to their slopes.
  const double log_half = half * std::log(1048576.0);
  EXPECT_NEAR(std::log(open[0].predicted->value / open[0].predicted->low), log_half,
              1e-3 * log_half);
  // Where they have values at the target, on the very line, nothing is missed.
  const auto closed = growth_table(ladder(1e-4, 0, {4096, 16384, 65536, kTarget}));
  EXPECT_NEAR(closed[0].predicted->high, 1e-4, 1e-12);
}

TEST(GrowthTable, NoErrorBeyondAll) {
  const auto rows = growth_table(ladder(1e-5, 1, {4096, 16384, 65536}));
  EXPECT_EQ(rows[0].predicted->value, 1);
  EXPECT_EQ(rows[0].predicted->high, 1);
}

TEST(GrowthTable, NeedsThreeLengths) {
  EXPECT_TRUE(growth_table(ladder(1e-4, 0, {4096, 16384})).empty());
  EXPECT_TRUE(growth_table(ladder(1e-4, 0, {4096, 16384, 262144, kTarget})).empty());
}

TEST(GrowthTable, FiveSeedsGiveTheirOwnInterval) {
  // Slopes 0, 0.01, ..., 0.04: mean 0.02, standard deviation 0.01 sqrt(2.5).
  const auto rows = growth_table(ladder(1e-3, 0, {4096, 16384, 65536}, 5, 0.01));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].seeds, 5u);
  EXPECT_NEAR(rows[0].slope->value, 0.02, 1e-12);
  const double half = kT4 * 0.01 * std::sqrt(2.5) * std::sqrt(1.2);
  EXPECT_NEAR(rows[0].slope->high - 0.02, half, 1e-3 * half);
  const auto four = growth_table(ladder(1e-3, 0, {4096, 16384, 65536}, 4, 0.01));
  EXPECT_NEAR(four[0].slope->high - four[0].slope->value, kT2 * 0.1 * std::sqrt(4.0 / 3), 1e-3);
}

TEST(GrowthTable, TextHasEveryNumber) {
  const std::string text = growth_text(ladder(1e-4, 0.25, {4096, 16384, 65536, kTarget}));
  for (const char* word : {"4096", "65536", "1048576", "state", "0.25", "3.20e-03"})
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
}

TEST(Ladder, IntervalOverFiveSeeds) {
  // Scores T^s with s = 1, 1.1, ..., 1.4; the null draws do not move.
  std::vector<CellResult> cells;
  for (int seed = 1; seed <= 5; ++seed)
    for (const std::int64_t T : {4096, 16384, 65536}) {
      cells.push_back(cell(T, 1e-4, 0, static_cast<std::uint64_t>(seed)));
      cells.back().states.push_back(
          {"state", 0, 0, std::pow(static_cast<double>(T), 0.9 + 0.1 * seed), {1, 1, 1}});
    }
  const double half = kT4 * 0.1 * std::sqrt(2.5) * std::sqrt(1.2);
  std::vector<CellResult> four(cells.begin(), cells.begin() + 12);
  judge_ladders(cells, default_policy());
  EXPECT_NEAR(cells[0].growth.context->value, 1, 1e-12);
  EXPECT_NEAR(cells[0].growth.context->low, 1 - half, 1e-3 * half);
  judge_ladders(four, default_policy());
  EXPECT_NEAR(four[0].growth.context->low, 1, 1e-12);
}

}  // namespace
}  // namespace numgate
