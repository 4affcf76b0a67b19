#include "reports/tensor_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "core/windows.h"
#include "reports/curve.h"
#include "reports/growth_rule.h"
#include "reports/score.h"
#include "reports/slope.h"
#include "reports/text.h"

namespace numgate {
namespace {

// What the largest of a hundred tensors of `rows` rows reaches where the 99.9th percentile of a row
// is `percentile` and the tail is normal: where one scalar dominates a row, its error is one normal
// draw, and a million tokens reach further than a thousand.
double largest_of(std::size_t rows, double percentile) {
  constexpr double kOneIn = 1000;  // rows lies above the percentile
  constexpr double kTensors = 100;
  return percentile * std::sqrt(std::log(kTensors * static_cast<double>(rows)) / std::log(kOneIn));
}

// Judges one tensor of a cell into the cell's result.
class TensorJudge {
 public:
  TensorJudge(const Case& c, const TensorProfile& tensor, const Policy& policy, CellResult& cell)
      : c_(c), tensor_(tensor), policy_(policy), limits_(policy.thresholds), cell_(cell) {
    out_.tensor = tensor.tensor;
  }

  void run() {
    if (tensor_.keys.size() != tensor_.kernel.squares.size() ||
        tensor_.keys.size() != tensor_.truth_squares.size() ||
        tensor_.keys.size() != tensor_.shadow.windows.size())
      throw std::logic_error("judge: " + tensor_.tensor +
                             ": windows of a profile differ in number");
    if (tensor_.kernel.nonfinite > 0)
      add("health", static_cast<double>(tensor_.kernel.nonfinite), 0,
          fmt::format("{} elements of {} are not finite where truth is", tensor_.kernel.nonfinite,
                      tensor_.tensor));
    if (tensor_.keys.empty()) return not_covered("no window was compared");
    if (tensor_.shadow.draws < 2) return not_covered("the shadow has too few draws for a null");
    for (std::size_t i = 0; i < tensor_.keys.size(); ++i)
      if (!std::isfinite(mean_square(tensor_.shadow.windows[i], tensor_.shadow.draws)) ||
          !std::isfinite(tensor_.truth_squares[i]))
        return not_covered("its truth or shadow is not finite");

    scores_ = score_windows(tensor_.kernel.squares, tensor_.shadow);
    find_contexts();
    const bool cast = !tensor_.kernel.row_excess.empty();
    if (cast) {
      judge_excess();
    } else {
      judge_windows();
      if (!tensor_.is_state) judge_rows();
      if (!tensor_.is_state) judge_growth();
    }
    if (tensor_.has_control) judge_equivalence();
    judge_accuracy();
    if (tensor_.is_state)
      keep_state_scores(cast);
    else
      keep_curves();
    cell_.tensors.push_back(std::move(out_));
  }

 private:
  using HeadRank = std::pair<std::int64_t, std::int32_t>;
  struct Context {
    std::int64_t origin = 0;       // its first token
    std::vector<std::size_t> fit;  // windows that slopes are fitted to
  };

  Reason& add(std::string rule, double measured, double limit, std::string text) {
    Reason reason;
    reason.sites = suspects(c_, rule);
    reason.rule = std::move(rule);
    reason.measured = measured;
    reason.limit = limit;
    reason.tensor = tensor_.tensor;
    reason.text = std::move(text);
    return cell_.reasons.emplace_back(std::move(reason));
  }

  void not_covered(const std::string& why) { add("coverage", 0, 0, tensor_.tensor + ": " + why); }

  // A final state's `rank` is its sequence, which is a rank only where sequences are packed.
  std::optional<std::int32_t> rank_of(std::int32_t rank) const {
    if (tensor_.is_state && c_.shape.cuts.empty()) return std::nullopt;
    return rank;
  }

  void place(Reason& reason, const WindowKey& key, std::int64_t token) const {
    reason.rank = rank_of(key.rank);
    reason.token = token;
    reason.head = key.head;
  }

  // One reason if any window's score exceeds `limit`: the largest score, at the first such window.
  void check_windows(const std::string& rule, const std::string& what, const std::vector<double>& w,
                     double limit) {
    const WindowKey* first = nullptr;
    for (std::size_t i = 0; i < w.size(); ++i)
      if (w[i] > limit && (!first || tensor_.keys[i].begin < first->begin))
        first = &tensor_.keys[i];
    if (!first) return;
    const double worst = *std::max_element(w.begin(), w.end());
    place(
        add(rule, worst, limit,
            fmt::format("{} of {} reaches {}, limit {}; first beyond it: {}", what, tensor_.tensor,
                        number_text(worst), number_text(limit),
                        tensor_.is_state ? "the state after token " + count_text(first->end)
                                         : fmt::format("tokens {} to {}", count_text(first->begin),
                                                       count_text(first->end - 1)))),
        *first, first->begin);
  }

  void judge_windows() {
    out_.score = *std::max_element(scores_.w.begin(), scores_.w.end());
    out_.score_null = scores_.null;
    // No error at all says nothing of the shadow: such a cell is exact, not loose.
    out_.loose = scores_.null > 0 && out_.score > 0 && out_.score < limits_.loose;
    check_windows("contract", "score", scores_.w,
                  std::max(limits_.score, limits_.score_null * scores_.null));
  }

  // One reason if any row's value exceeds `limit`: the largest value, at the first such token.
  template <class Value>
  double check_rows(const std::string& what, std::size_t rows, double limit, Value value) {
    double worst = 0;
    std::optional<std::size_t> first;
    for (std::size_t row = 0; row < rows; ++row) {
      const double v = value(row);
      worst = std::max(worst, v);
      if (v > limit && !first) first = row;
    }
    if (!first) return worst;
    const auto token = static_cast<std::int64_t>(*first) / tensor_.heads;
    const auto head = static_cast<std::int64_t>(*first) % tensor_.heads;
    Reason& reason =
        add("contract", worst, limit,
            fmt::format("{} of {} reaches {}, limit {}; first beyond it: token {}", what,
                        tensor_.tensor, number_text(worst), number_text(limit), count_text(token)));
    reason.token = token;
    reason.head = head;
    for (const WindowKey& key : tensor_.keys)
      if (key.head == head && key.begin <= token && token < key.end) reason.rank = key.rank;
    return worst;
  }

  void judge_rows() {
    const auto& rows = tensor_.kernel.row_max;
    if (rows.size() != tensor_.shadow.row_max[0].size() ||
        rows.size() != tensor_.shadow.row_max[1].size())
      throw std::logic_error("judge: " + tensor_.tensor + ": rows of a profile differ in number");
    if (rows.empty()) {
      return not_covered("no row was compared");
    }
    out_.token_null = tensor_.shadow.row_null;
    out_.token_score = check_rows(
        "token score", rows.size(),
        std::max(limits_.token_score,
                 limits_.token_null * largest_of(rows.size(), tensor_.shadow.row_null)),
        [&](std::size_t row) { return ratio(rows[row], row_shadow(tensor_.shadow, row)); });
  }

  void judge_excess() {
    const auto& rows = tensor_.kernel.row_excess;
    out_.excess = check_rows("excess", rows.size(), limits_.excess,
                             [&](std::size_t row) { return ratio(rows[row], 1); });
  }

  // The context that a window belongs to: packed sequences are contexts of their own, ranks share
  // one.
  HeadRank context_of(const WindowKey& key) const {
    return {key.head, c_.shape.cuts.empty() ? 0 : key.rank};
  }

  // For each context the windows that end at T, T/2, T/4, T/8, or nearest below, last first.
  void find_contexts() {
    std::map<HeadRank, std::vector<std::size_t>> members;
    for (std::size_t i = 0; i < tensor_.keys.size(); ++i)
      members[context_of(tensor_.keys[i])].push_back(i);
    for (const auto& [key, windows] : members) {
      Context context;
      context.origin = tensor_.keys[windows.front()].begin;
      std::int64_t end = 0;
      for (const std::size_t i : windows) {
        context.origin = std::min(context.origin, tensor_.keys[i].begin);
        end = std::max(end, tensor_.keys[i].end);
      }
      for (std::int64_t target = end - context.origin, n = 0; n < 4; ++n, target /= 2) {
        std::optional<std::size_t> best;
        for (const std::size_t i : windows) {
          const std::int64_t t = tensor_.keys[i].end - context.origin;
          if (t >= kWindowTokens && t <= target &&
              (!best || tensor_.keys[*best].end < tensor_.keys[i].end))
            best = i;
        }
        if (best && (context.fit.empty() || context.fit.back() != *best))
          context.fit.push_back(*best);
      }
      // With fewer than three octaves of windows the slope is that of a beginning, not of growth.
      if (end - context.origin < 8 * kWindowTokens) context.fit.clear();
      contexts_[key] = std::move(context);
    }
  }

  template <class Value>
  std::optional<Slope> fit(const Context& context, double floor, Value value) const {
    std::vector<FitPoint> points;
    for (const std::size_t i : context.fit)
      points.push_back({tensor_.keys[i].end - context.origin, value(i), scores_.nulls[i]});
    return fit_slope(std::move(points), floor);
  }

  void judge_growth() {
    std::optional<Slope> failing;
    std::int64_t head = 0;
    double w = 0;
    for (const auto& [key, context] : contexts_) {
      const auto slope = fit(context, 1, [&](std::size_t i) { return scores_.w[i]; });
      if (!slope) continue;
      if (!out_.growth || slope->low > out_.growth->low) out_.growth = slope;
      const double last = scores_.w[context.fit.front()];
      if (!grows_beyond(*slope, last, policy_) || (failing && slope->low <= failing->low)) continue;
      failing = slope;
      head = key.first;
      w = last;
    }
    if (failing) {
      Reason reason = growth_reason(c_, tensor_.tensor, "token position", *failing, w, policy_);
      reason.head = head;
      cell_.reasons.push_back(std::move(reason));
    }
  }

  void judge_equivalence() {
    const Equivalence kind = equivalence(c_.schedule);
    if (kind == Equivalence::E) {
      out_.differing = tensor_.differing_bits;
      if (tensor_.differing_bits > 0)
        add("equivalence", static_cast<double>(tensor_.differing_bits), 0,
            fmt::format("{} elements of {} differ from the sequential schedule's",
                        tensor_.differing_bits, tensor_.tensor));
    }
    if (kind != Equivalence::R) return;
    const bool same = tensor_.schedule_shadow.windows.empty();
    if (same && c_.plan.declared.formats != c_.plan.declared.schedule_sites_at_ieee().formats) {
      return not_covered("no shadow with the schedule's sites at ieee");
    }
    const Scores r =
        score_windows(tensor_.kernel.squares, same ? tensor_.shadow : tensor_.schedule_shadow,
                      tensor_.control.squares);
    out_.equivalence = *std::max_element(r.w.begin(), r.w.end());
    out_.equivalence_null = r.null;
    check_windows("equivalence", "error against the sequential schedule", r.w,
                  std::max(limits_.equivalence, limits_.equivalence_null * r.null));
  }

  void judge_accuracy() {
    // By head and rank, the window sums of error and truth.
    struct Sum {
      double error = 0, truth = 0;
      std::int64_t rows = 0;
    };
    std::map<HeadRank, Sum> sums;
    for (std::size_t i = 0; i < tensor_.keys.size(); ++i) {
      const auto& k = tensor_.keys[i];
      Sum& sum = sums[{k.head, k.rank}];
      sum.error += tensor_.kernel.squares[i];
      sum.truth += tensor_.truth_squares[i];
      sum.rows += k.end - k.begin;
    }
    // The truth of a few tokens may be nearly zero: a packed sequence of fewer than a window's
    // least rows is not held to the budget beside longer ones.
    const auto is_short = [](const auto& s) { return s.second.rows < kShortestWindow; };
    if (!tensor_.is_state && !std::all_of(sums.begin(), sums.end(), is_short))
      std::erase_if(sums, is_short);
    std::map<HeadRank, std::optional<Slope>> slopes;
    for (const auto& [key, context] : contexts_)
      slopes[key] = fit(context, 0, [&](std::size_t i) {
        return std::sqrt(ratio(tensor_.kernel.squares[i], tensor_.truth_squares[i]));
      });

    HeadRank worst = sums.begin()->first, largest = worst;
    double worst_error = 0;
    bool first = true;
    for (const auto& [key, sum] : sums) {
      const double relative = std::sqrt(ratio(sum.error, sum.truth));
      const auto& slope = slopes.at(context_of({key.first, 0, 0, key.second}));
      double projected = relative;
      if (slope && slope->low > limits_.error_slope)
        projected =
            std::max(relative, std::min(1.0, project(relative, *slope, slope->low, policy_)));
      if (relative > out_.error.relative) out_.error.relative = relative, largest = key;
      // By the error itself where projections meet at their cap.
      if (first || std::pair(projected, relative) > std::pair(out_.error.projected, worst_error)) {
        out_.error.projected = projected;
        out_.error.slope = slope;
        worst = key;
        worst_error = relative;
      }
      first = false;
    }
    keep_error_null(largest, sums.at(largest).truth);
    if (out_.error.projected > cell_.budget) {
      Reason& reason =
          add("accuracy", out_.error.projected, cell_.budget,
              fmt::format("relative error of {} is {}, {} at {} tokens; budget {}", tensor_.tensor,
                          number_text(worst_error), number_text(out_.error.projected),
                          count_text(std::max(policy_.target_context, c_.shape.T)),
                          number_text(cell_.budget)));
      reason.head = worst.first;
      reason.rank = rank_of(worst.second);
      for (std::size_t i = tensor_.keys.size(); i-- > 0;)
        if (tensor_.keys[i].head == worst.first && tensor_.keys[i].rank == worst.second &&
            std::sqrt(ratio(tensor_.kernel.squares[i], tensor_.truth_squares[i])) > cell_.budget)
          reason.token = tensor_.keys[i].begin;
    }
  }

  void keep_error_null(const HeadRank& key, double truth) {
    const int draws = tensor_.shadow.draws;
    std::vector<double> squares(static_cast<std::size_t>(draws));
    for (std::size_t i = 0; i < tensor_.keys.size(); ++i) {
      if (HeadRank{tensor_.keys[i].head, tensor_.keys[i].rank} != key) continue;
      const ShadowWindow& window = tensor_.shadow.windows[i];
      const auto& of_mode = window.squares[kept_mode(window, draws)];
      for (int d = 0; d < draws; ++d) squares[d] += of_mode[d];
    }
    for (const double s : squares) out_.error_null.push_back(std::sqrt(ratio(s, truth)));
  }

  void keep_state_scores(bool cast) {
    if (cast) return;  // its windows were not scored
    for (std::size_t i = 0; i < tensor_.keys.size(); ++i)
      cell_.states.push_back({tensor_.tensor, tensor_.keys[i].head, tensor_.keys[i].rank,
                              scores_.w[i], scores_.nulls[i]});
  }

  void keep_curves() {
    const auto worst = static_cast<std::size_t>(
        std::max_element(scores_.w.begin(), scores_.w.end()) - scores_.w.begin());
    out_.curve_head = tensor_.keys[worst].head;
    out_.curves = curves(tensor_, scores_.w, out_.curve_head, worst);
  }

  const Case& c_;
  const TensorProfile& tensor_;
  const Policy& policy_;
  const Thresholds& limits_;
  CellResult& cell_;
  TensorResult out_;
  std::map<HeadRank, Context> contexts_;
  Scores scores_;
};

}  // namespace

void judge_tensor(const Case& c, const TensorProfile& tensor, const Policy& policy,
                  CellResult& cell) {
  TensorJudge(c, tensor, policy, cell).run();
}

}  // namespace numgate
