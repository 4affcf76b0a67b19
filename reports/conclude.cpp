// What needs more than one cell: ladders, controls, waivers, the verdict of the whole.
#include <algorithm>
#include <map>
#include <tuple>

#include "reports/growth_rule.h"
#include "reports/judge.h"
#include "reports/report.h"
#include "reports/slope.h"

namespace numgate {

std::optional<Slope> growth_context(std::vector<LadderPoint> ladder) {
  std::vector<FitPoint> points;
  for (LadderPoint& p : ladder) points.push_back({p.tokens, p.score, std::move(p.null_scores)});
  return fit_slope(std::move(points), 1);
}

void judge_ladders(std::vector<CellResult>& cells, const Policy& policy) {
  // Final states by everything but T. Packed sequences end at many lengths: they are no ladder.
  using Key = std::tuple<std::string, std::string, std::int64_t>;
  std::map<Key, std::vector<std::pair<CellResult*, const StateScore*>>> ladders;
  for (CellResult& cell : cells) {
    if (!cell.c.shape.cuts.empty()) continue;
    Case any_length = cell.c;
    any_length.shape.T = 1;
    for (const StateScore& state : cell.states)
      ladders[{any_length.id(), state.tensor, state.head}].emplace_back(&cell, &state);
  }
  std::map<Key, Slope> slopes;
  std::map<Key, std::vector<double>> over_seeds;  // by everything but T and seed
  const auto any_seed = [](const CellResult& cell, const StateScore& state) {
    Case c = cell.c;
    c.shape.T = 1, c.seed = 0;
    return Key{c.id(), state.tensor, state.head};
  };
  for (const auto& [key, states] : ladders) {
    std::vector<LadderPoint> ladder;
    for (const auto& [cell, state] : states)
      ladder.push_back({cell->c.shape.T, state->score, state->null_scores});
    if (const auto slope = growth_context(std::move(ladder))) {
      slopes[key] = *slope;
      over_seeds[any_seed(*states[0].first, *states[0].second)].push_back(slope->value);
    }
  }
  for (const auto& [key, states] : ladders) {
    const auto fitted = slopes.find(key);
    if (fitted == slopes.end()) continue;
    std::optional<Slope> slope = fitted->second;
    if (const auto& values = over_seeds.at(any_seed(*states[0].first, *states[0].second));
        values.size() >= kSeedsForInterval) {
      const double half = half_interval(values);
      slope->low = slope->value - half, slope->high = slope->value + half;
    }
    const auto longest = std::max_element(states.begin(), states.end(), [](auto& a, auto& b) {
      return a.first->c.shape.T < b.first->c.shape.T;
    });
    const double w = longest->second->score;
    for (const auto& [cell, state] : states) {
      if (!cell->growth.context || slope->low > cell->growth.context->low)
        cell->growth.context = slope;
      if (!grows_beyond(*slope, w, policy)) continue;
      Reason reason = growth_reason(cell->c, state->tensor, "context", *slope, w, policy);
      reason.head = state->head;
      // One reason a cell and tensor, of the head that grows most.
      const auto same = std::find_if(
          cell->reasons.begin(), cell->reasons.end(),
          [&](const Reason& r) { return r.rule == "growth" && r.tensor == reason.tensor; });
      if (same == cell->reasons.end())
        cell->reasons.push_back(std::move(reason));
      else if (same->measured < reason.measured)
        *same = std::move(reason);
    }
  }
  for (CellResult& cell : cells) settle(cell);
}

void apply_waivers(CellResult& cell, const Policy& policy) {
  const std::string id = cell.c.id();
  for (Reason& reason : cell.reasons)
    for (const Waiver& waiver : policy.waivers)
      if (waiver.rule == reason.rule && glob_match(waiver.case_glob, id)) {
        reason.waived_by = waiver.owner;
        break;
      }
  settle(cell);
}

void apply_control(CellResult& cell, const std::vector<std::string>& rules) {
  cell.is_control = true;
  // One that did not run to its end, or had no live inputs, is incomplete: it shows nothing about
  // the gate.
  if (cell.verdict != Verdict::FAIL && cell.verdict != Verdict::PASS) return;
  const bool caught =
      cell.verdict == Verdict::FAIL &&
      std::all_of(rules.begin(), rules.end(), [&](const auto& rule) {
        return std::any_of(cell.reasons.begin(), cell.reasons.end(),
                           [&](const Reason& reason) { return reason.rule == rule; });
      });
  if (caught)
    cell.verdict = Verdict::CAUGHT;
  else
    cell.control_missed = true;
}

void conclude(Report& report) {
  judge_ladders(report.cells, report.policy);
  for (CellResult& cell : report.cells) {
    const std::string id = cell.c.id();
    std::vector<std::string> rules;
    bool is_control = false;
    for (const Control& control : report.controls)
      if (glob_match(control.glob, id)) {
        is_control = true;
        rules.insert(rules.end(), control.rules.begin(), control.rules.end());
      }
    if (is_control)
      apply_control(cell, rules);
    else
      apply_waivers(cell, report.policy);
  }
  report.verdict = report.cells.empty() ? Verdict::NOT_VERIFIED : Verdict::PASS;
  for (const CellResult& cell : report.cells)
    if (cell.verdict != Verdict::CAUGHT) report.verdict = std::max(report.verdict, cell.verdict);
  for (Control& control : report.controls) {
    bool seen = false;
    control.caught = true;
    for (const CellResult& cell : report.cells)
      if (glob_match(control.glob, cell.c.id())) {
        seen = true;
        control.caught = control.caught && cell.verdict == Verdict::CAUGHT;
        control.missed = control.missed || cell.control_missed;
      }
    control.caught = control.caught && seen;
    if (!control.caught) report.verdict = std::max(report.verdict, Verdict::NOT_VERIFIED);
    if (control.missed) report.verdict = Verdict::ERROR;
  }
}

ExitCode exit_code(const Report& report) {
  for (const Control& control : report.controls)
    if (control.missed) return ExitCode::oracle_invalid;
  for (const CellResult& cell : report.cells)
    for (const Reason& reason : cell.reasons)
      if (reason.rule == "oracle") return ExitCode::oracle_invalid;
  switch (report.verdict) {
    case Verdict::PASS:
    case Verdict::CAUGHT:
      return ExitCode::pass;
    case Verdict::NOT_VERIFIED:
      return ExitCode::incomplete;
    case Verdict::TIMEOUT:
      return ExitCode::timeout;
    case Verdict::FAIL:
      return ExitCode::gate_violated;
    case Verdict::ERROR:
      return ExitCode::internal;
  }
  return ExitCode::internal;
}

}  // namespace numgate
