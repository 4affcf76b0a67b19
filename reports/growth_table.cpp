#include "reports/growth_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "reports/html_cells.h"
#include "reports/render_text.h"

namespace numgate {
namespace {

using Ladder = std::map<std::int64_t, const TensorResult*>;  // by T, of one seed

// What one seed's ladder says.
struct SeedFit {
  std::optional<Slope> slope;
  std::optional<Extrapolation> predicted;
  double log_miss = 0;  // log(predicted / measured), or log(predicted) where nothing was measured
};

SeedFit fit(const Ladder& ladder, std::int64_t target) {
  std::vector<FitPoint> points;
  for (const auto& [T, t] : ladder)
    if (T <= kFitUpTo) points.push_back({T, t->error.relative, t->error_null});
  SeedFit out;
  out.slope = fit_slope(points, 0);
  const auto there = ladder.find(target);
  const bool measured = there != ladder.end();
  out.predicted = extrapolate(std::move(points), target,
                              measured ? there->second->error_null : std::vector<double>{});
  if (out.predicted)
    out.log_miss =
        std::log(out.predicted->value / (measured ? there->second->error.relative : 1.0));
  return out;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

GrowthRow row_of(std::string name, std::string tensor, const std::vector<Ladder>& seeds,
                 std::int64_t target) {
  GrowthRow row{std::move(name), std::move(tensor), seeds.size(), {}, {}, {}, {}};
  std::map<std::int64_t, std::vector<double>> logs;
  for (const Ladder& ladder : seeds)
    for (const auto& [T, t] : ladder) logs[T].push_back(std::log(t->error.relative));
  for (const auto& [T, values] : logs) row.errors.emplace_back(T, std::exp(mean(values)));
  if (const auto there = logs.find(target); there != logs.end() && target > kFitUpTo)
    row.measured = std::exp(mean(there->second));

  std::vector<double> slopes, predictions, misses;
  std::optional<SeedFit> first;
  for (const Ladder& ladder : seeds) {
    const SeedFit f = fit(ladder, target);
    if (!f.slope || !f.predicted) continue;
    if (!first) first = f;
    slopes.push_back(f.slope->value);
    predictions.push_back(std::log(f.predicted->value));
    misses.push_back(f.log_miss);
  }
  if (!first) return row;
  row.slope = first->slope;
  row.predicted = first->predicted;
  if (slopes.size() >= kSeedsForInterval) {
    const double value = mean(slopes), half = half_interval(slopes);
    row.slope = Slope{value, value - half, value + half, first->slope->at_end, first->slope->end};
    const double log_value = mean(predictions), log_half = half_interval(misses);
    row.predicted = Extrapolation{std::exp(log_value), std::exp(log_value - log_half),
                                  std::exp(log_value + log_half)};
  }
  for (double* x : {&row.predicted->value, &row.predicted->low, &row.predicted->high})
    *x = std::min(*x, 1.0);
  if (target <= kFitUpTo) row.predicted.reset();
  return row;
}

}  // namespace

std::vector<GrowthRow> growth_table(const Report& report) {
  // Ladders of one seed that differ in nothing else belong together.
  std::map<std::string, std::vector<const std::vector<const CellResult*>*>> by_name;
  std::vector<std::string> order;
  const auto all = ladders(report);
  for (const auto& ladder : all) {
    Case any_seed = ladder.front()->c;
    any_seed.seed = 0, any_seed.shape.T = 1;
    auto& same = by_name[any_seed.id()];
    if (same.empty()) order.push_back(any_seed.id());
    same.push_back(&ladder);
  }
  std::vector<GrowthRow> rows;
  for (const std::string& id : order) {
    std::map<std::string, std::vector<Ladder>> by_tensor;
    for (const auto* cells : by_name[id]) {
      std::map<std::string, Ladder> own;
      for (const CellResult* cell : *cells)
        for (const TensorResult& t : cell->tensors) own[t.tensor][cell->c.shape.T] = &t;
      for (auto& [tensor, ladder] : own) by_tensor[tensor].push_back(std::move(ladder));
    }
    for (const auto& [tensor, seeds] : by_tensor) {
      const Ladder& first = seeds.front();
      if (std::distance(first.begin(), first.upper_bound(kFitUpTo)) < 3) continue;
      rows.push_back(row_of(ladder_text(by_name[id].front()->front()->c), tensor, seeds,
                            report.policy.target_context));
    }
  }
  return rows;
}

std::vector<std::int64_t> lengths_of(const std::vector<GrowthRow>& rows) {
  std::vector<std::int64_t> lengths;
  for (const GrowthRow& row : rows)
    for (const auto& [T, error] : row.errors) lengths.push_back(T);
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

std::string growth_text(const Report& report) {
  const auto rows = growth_table(report);
  const auto lengths = lengths_of(rows);
  std::string out = fmt::format("{:<6}", "tensor");
  for (const std::int64_t T : lengths) out += fmt::format(" {:>9}", T);
  out += fmt::format("  {:<24} {:<32} {}\n", fmt::format("slope to {}", kFitUpTo),
                     fmt::format("predicted at {}", report.policy.target_context), "measured");
  std::string ladder;
  for (const GrowthRow& row : rows) {
    if (row.ladder != ladder) {
      ladder = row.ladder;
      out += ladder + (row.seeds > 1 ? fmt::format("  ({} seeds)", row.seeds) : "") + "\n";
    }
    out += fmt::format("{:<6}", row.tensor);
    for (const std::int64_t T : lengths) {
      const auto it = std::find_if(row.errors.begin(), row.errors.end(),
                                   [T](const auto& e) { return e.first == T; });
      out +=
          it == row.errors.end() ? fmt::format(" {:>9}", "") : fmt::format(" {:>9.2e}", it->second);
    }
    out += fmt::format("  {:<24}", row.slope
                                       ? fmt::format("{:.2f} ({:.2f} to {:.2f})", row.slope->value,
                                                     row.slope->low, row.slope->high)
                                       : "");
    out += fmt::format(
        " {:<32}", row.predicted ? fmt::format("{:.2e} ({:.2e} to {:.2e})", row.predicted->value,
                                               row.predicted->low, row.predicted->high)
                                 : "");
    out += row.measured ? fmt::format(" {:.2e}\n", *row.measured) : "\n";
  }
  return out;
}

}  // namespace numgate
