// Scores: an error over what the shadow explains, and the same for the shadow's own draws (the
// null).
#pragma once
#include <string>
#include <vector>

#include "core/profile.h"

namespace numgate {

// a / b of two non-negative numbers where 0/0 is 0 and x/0, like anything not finite, is infinite.
double ratio(double a, double b);

// The mode that a window keeps (mode P): the one with the larger mean square.
int kept_mode(const ShadowWindow& w, int draws);
// Mean over the draws of the kept mode's sum of squares.
double mean_square(const ShadowWindow& w, int draws);
// Each draw of the kept mode scored against the mean of the others.
std::vector<double> null_scores(const ShadowWindow& w, int draws);

// The smallest value that 99.9 % of `values` do not exceed; 0 of none.
double percentile_999(std::vector<double> values);

// The larger mode of a row's token shadow.
double row_shadow(const TensorShadow& shadow, std::size_t row);

// W and its nulls by window, of an error against a shadow; `other` (empty or by window) is a second
// error whose square replaces the shadow's where it is larger (W_R).
struct Scores {
  std::vector<double> w;                   // by window
  std::vector<std::vector<double>> nulls;  // by window and draw
  double null = 0;                         // 99.9th percentile of nulls, pooled
};
Scores score_windows(const std::vector<double>& squares, const TensorShadow& shadow,
                     const std::vector<double>& other = {});

}  // namespace numgate
