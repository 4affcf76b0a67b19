#include "reports/slope.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace numgate {
namespace {

struct Line {
  double slope, at_last;
};

// Through points with increasing x.
Line least_squares(const std::vector<double>& x, const std::vector<double>& y) {
  const double n = static_cast<double>(x.size());
  const double mx = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double my = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    xy += (x[i] - mx) * (y[i] - my);
  }
  return {xy / xx, my + xy / xx * (x.back() - mx)};
}

}  // namespace

double half_interval(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const boost::math::students_t t(n - 1);
  return boost::math::quantile(t, 0.995) * std::sqrt(squares / (n - 1) * (1 + 1 / n));
}

std::optional<Slope> fit_slope(std::vector<FitPoint> points, double floor) {
  std::sort(points.begin(), points.end(),
            [](const FitPoint& a, const FitPoint& b) { return a.t < b.t; });
  if (points.size() < 3 || points.front().t < 1 || points.front().t == points.back().t)
    return std::nullopt;
  const std::size_t draws = points.front().null_scores.size();
  if (draws < 2) return std::nullopt;

  std::vector<double> x;
  for (const FitPoint& p : points) x.push_back(std::log(static_cast<double>(p.t)));
  const auto line = [&](const auto& value) -> std::optional<Line> {
    std::vector<double> y;
    for (const FitPoint& p : points) y.push_back(std::log(std::max(value(p), floor)));
    for (const double v : y)
      if (!std::isfinite(v)) return std::nullopt;
    return least_squares(x, y);
  };

  const auto fit = line([](const FitPoint& p) { return p.value; });
  if (!fit) return std::nullopt;
  std::vector<double> slopes;
  for (std::size_t d = 0; d < draws; ++d) {
    const auto null_fit = line([d](const FitPoint& p) { return p.null_scores.at(d); });
    if (!null_fit) return std::nullopt;
    slopes.push_back(null_fit->slope);
  }
  const double half = half_interval(slopes);
  return Slope{fit->slope, fit->slope - half, fit->slope + half, std::exp(fit->at_last),
               points.back().t};
}

}  // namespace numgate
