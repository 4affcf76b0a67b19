// Growth by context: the errors of a ladder of lengths, what the short ones predict for the long
// one, and what was measured there.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/report.h"
#include "reports/slope.h"

namespace numgate {

inline constexpr std::int64_t kFitUpTo = 65536;  // tokens; longer contexts are predicted

// One tensor of the cases that differ in T (and seed) alone.
struct GrowthRow {
  std::string ladder;  // the case without T
  std::string tensor;
  std::size_t seeds = 0;
  std::vector<std::pair<std::int64_t, double>>
      errors;                  // T, relative error (geometric mean of seeds)
  std::optional<Slope> slope;  // of log error over log T, at most kFitUpTo
  // At the target context, no value above 1: a tensor that is lost has that error.
  std::optional<Extrapolation> predicted;
  std::optional<double> measured;
};

// Ladders of at least three lengths up to kFitUpTo, in the report's order. Intervals are of 99 %:
// from the shadow's null draws, or from the seeds where there are kSeedsForInterval of them.
std::vector<GrowthRow> growth_table(const Report& report);

// Every T of the rows, ascending.
std::vector<std::int64_t> lengths_of(const std::vector<GrowthRow>& rows);

// The same as text, one row a ladder and tensor.
std::string growth_text(const Report& report);

}  // namespace numgate
