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

// Half of the 99 % interval of one more value like those given; at least two.
double half_interval(const std::vector<double>& values);

}  // namespace numgate
