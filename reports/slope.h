// Fitted exponents and their intervals.
#pragma once
#include <optional>
#include <vector>

#include "reports/result.h"

namespace numgate {

// Score or relative error at a position, and the score of each null draw there.
struct FitPoint {
  std::int64_t t = 0;
  double value = 0;
  std::vector<double> null_scores;
};

// Least-squares slope of log max(value, floor) over log t, the same floor for the null draws; floor
// 0 fits the values as they are. The interval is a 99 % prediction interval (Student's t) from the
// slopes of the null draws. None with fewer than three points or two draws, or where a logarithm is
// not finite.
std::optional<Slope> fit_slope(std::vector<FitPoint> points, double floor);

// What the line of fit_slope with floor 0 says of a longer context: the value at `to`, and the 99 %
// interval of a value measured there, from the lines of the null draws and, where given, the null
// draws at `to`.
struct Extrapolation {
  double value = 0, low = 0, high = 0;
};
std::optional<Extrapolation> extrapolate(std::vector<FitPoint> points, std::int64_t to,
                                         const std::vector<double>& null_scores_there = {});

// From this many seeds on an interval comes from the seeds' own fits rather than the null draws'.
inline constexpr std::size_t kSeedsForInterval = 5;

// Half of the 99 % interval of one more value like those given; at least two.
double half_interval(const std::vector<double>& values);

}  // namespace numgate
