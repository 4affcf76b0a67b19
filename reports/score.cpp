#include "reports/score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace numgate {

double ratio(double a, double b) {
  if (a == 0 && !std::isnan(b)) return 0;
  if (!std::isfinite(a) || !std::isfinite(b) || b == 0)
    return std::numeric_limits<double>::infinity();
  return a / b;
}

static double sum(const ShadowWindow& w, int mode, int draws) {
  return std::accumulate(w.squares[mode].begin(), w.squares[mode].begin() + draws, 0.0);
}

int kept_mode(const ShadowWindow& w, int draws) { return sum(w, 1, draws) > sum(w, 0, draws); }

double mean_square(const ShadowWindow& w, int draws) {
  return sum(w, kept_mode(w, draws), draws) / draws;
}

std::vector<double> null_scores(const ShadowWindow& w, int draws) {
  const auto& squares = w.squares[kept_mode(w, draws)];
  std::vector<double> scores;
  for (int d = 0; d < draws; ++d) {
    // Summed anew: the total less one draw would cancel where that draw is most of it.
    double others = 0;
    for (int e = 0; e < draws; ++e)
      if (e != d) others += squares[e];
    scores.push_back(std::sqrt(ratio(squares[d], others / (draws - 1))));
  }
  return scores;
}

double percentile_999(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(0.999 * static_cast<double>(values.size())));
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

double row_shadow(const TensorShadow& shadow, std::size_t row) {
  return std::max(shadow.row_max[0].at(row), shadow.row_max[1].at(row));
}

Scores score_windows(const std::vector<double>& squares, const TensorShadow& shadow,
                     const std::vector<double>& other) {
  if (squares.size() != shadow.windows.size() || (!other.empty() && other.size() != squares.size()))
    throw std::logic_error("score_windows: errors and shadow differ in their windows");
  Scores scores;
  std::vector<double> pooled;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    double explained = mean_square(shadow.windows[i], shadow.draws);
    if (!other.empty()) explained = std::max(explained, other[i]);
    scores.w.push_back(std::sqrt(ratio(squares[i], explained)));
    scores.nulls.push_back(null_scores(shadow.windows[i], shadow.draws));
    pooled.insert(pooled.end(), scores.nulls.back().begin(), scores.nulls.back().end());
  }
  scores.null = percentile_999(std::move(pooled));
  return scores;
}

}  // namespace numgate
