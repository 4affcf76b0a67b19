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

namespace {

struct Fit {
  Line line;
  std::vector<Line> nulls;  // by draw
  std::int64_t last = 0;    // t that at_last is of
};

std::optional<Fit> fit_lines(std::vector<FitPoint> points, double floor) {
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

  const auto own = line([](const FitPoint& p) { return p.value; });
  if (!own) return std::nullopt;
  Fit fit{*own, {}, points.back().t};
  for (std::size_t d = 0; d < draws; ++d) {
    const auto null_line = line([d](const FitPoint& p) { return p.null_scores.at(d); });
    if (!null_line) return std::nullopt;
    fit.nulls.push_back(*null_line);
  }
  return fit;
}

}  // namespace

std::optional<Slope> fit_slope(std::vector<FitPoint> points, double floor) {
  const auto fit = fit_lines(std::move(points), floor);
  if (!fit) return std::nullopt;
  std::vector<double> slopes;
  for (const Line& null_line : fit->nulls) slopes.push_back(null_line.slope);
  const double half = half_interval(slopes);
  return Slope{fit->line.slope, fit->line.slope - half, fit->line.slope + half,
               std::exp(fit->line.at_last), fit->last};
}

std::optional<Extrapolation> extrapolate(std::vector<FitPoint> points, std::int64_t to,
                                         const std::vector<double>& null_scores_there) {
  const auto fit = fit_lines(std::move(points), 0);
  if (!fit) return std::nullopt;
  const double octaves = std::log(static_cast<double>(to) / static_cast<double>(fit->last));
  const auto at_end = [&](const Line& line) { return line.at_last + line.slope * octaves; };
  std::vector<double> misses;  // of a draw's line, from its own value there
  for (std::size_t d = 0; d < fit->nulls.size(); ++d)
    misses.push_back(at_end(fit->nulls[d]) -
                     (d < null_scores_there.size() ? std::log(null_scores_there[d]) : 0));
  const double value = at_end(fit->line), half = half_interval(misses);
  if (!std::isfinite(half)) return std::nullopt;
  return Extrapolation{std::exp(value), std::exp(value - half), std::exp(value + half)};
}

}  // namespace numgate
