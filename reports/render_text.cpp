#include "reports/render_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace numgate {

std::string verdict_words(Verdict v) {
  return v == Verdict::NOT_VERIFIED ? "NOT VERIFIED" : std::string(name(v));
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::string place_text(const Reason& reason) {
  std::string text;
  if (reason.rank) text = fmt::format("rank {}", *reason.rank);
  if (reason.token)
    text += fmt::format("{}token {}", text.empty() ? "" : ", ", count_text(*reason.token));
  return text;
}

std::string headline(const Report& report) {
  switch (report.verdict) {
    case Verdict::PASS:
    case Verdict::CAUGHT:
      return "This change may merge";
    case Verdict::FAIL:
      return "This change must not merge";
    case Verdict::TIMEOUT:
      return "Not finished in time: this change may not merge yet";
    case Verdict::NOT_VERIFIED:
      return "Not everything was verified: this change may not merge yet";
    case Verdict::ERROR:
      return "The gate itself failed: nothing below can be relied on";
  }
  return "";
}

static std::string plural(std::size_t n, const std::string& word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

Findings findings(const Report& report) {
  std::set<std::string> stages, schedules, families;
  std::int64_t longest = 0;
  std::size_t verified = 0, failed = 0, unverified = 0, timeouts = 0, errors = 0, loose = 0,
              waived = 0;
  for (const CellResult& cell : report.cells) {
    loose += cell.loose;
    waived += std::any_of(cell.reasons.begin(), cell.reasons.end(),
                          [](const Reason& r) { return !r.waived_by.empty(); });
    switch (cell.verdict) {
      case Verdict::PASS:
        ++verified;
        stages.insert(cell.c.stage);
        schedules.insert(cell.c.schedule.text());
        families.insert(cell.c.family);
        longest = std::max(longest, cell.c.shape.T);
        break;
      case Verdict::FAIL:
        ++failed;
        break;
      case Verdict::NOT_VERIFIED:
        ++unverified;
        break;
      case Verdict::TIMEOUT:
        ++timeouts;
        break;
      case Verdict::ERROR:
        ++errors;
        break;
      case Verdict::CAUGHT:
        break;
    }
  }
  Findings f;
  f.verified =
      verified == 0
          ? "No case passed."
          : fmt::format(
                "{} passed, over {}, {} and {} of inputs, at up to {} tokens on the "
                "{} backend. Errors and growth are projected to {} tokens.",
                plural(verified, "case"), plural(stages.size(), "stage"),
                plural(schedules.size(), "schedule"),
                families.size() == 1 ? "1 family" : fmt::format("{} families", families.size()),
                count_text(longest), report.backend, count_text(report.policy.target_context));
  if (failed) f.verified += fmt::format(" {} failed.", plural(failed, "case"));

  const auto caught = static_cast<std::size_t>(std::count_if(
      report.controls.begin(), report.controls.end(), [](auto& c) { return c.caught; }));
  f.controls =
      report.controls.empty()
          ? "None ran: the cases were chosen by hand, so this report says nothing about the "
            "gate's own power."
          : fmt::format("{} of {} caught, for the reasons expected.", caught,
                        plural(report.controls.size(), "planted fault"));

  std::vector<std::string> gaps;
  if (unverified) gaps.push_back(plural(unverified, "case") + " not verified");
  if (timeouts) gaps.push_back(plural(timeouts, "case") + " out of time");
  if (errors) gaps.push_back(plural(errors, "case") + " in error");
  if (loose) gaps.push_back(plural(loose, "case") + " LOOSE, vouching for nothing");
  if (waived) gaps.push_back(plural(waived, "case") + " under a waiver");
  if (longest < report.policy.target_context)
    gaps.push_back(fmt::format("contexts beyond {} tokens, which were projected, not run",
                               count_text(longest)));
  f.not_verified = gaps.empty() ? "Nothing was left out." : join(gaps, "; ") + ".";
  return f;
}

const Reason* worst_reason(const CellResult& cell) {
  const Reason* worst = nullptr;
  double size = -1;
  for (const Reason& r : cell.reasons) {
    const double ratio = r.limit > 0 ? r.measured / r.limit : r.measured;
    if (r.waived_by.empty() && ratio > size) {
      worst = &r;
      size = ratio;
    }
  }
  return worst;
}

std::vector<const CellResult*> failures(const Report& report) {
  std::vector<const CellResult*> cells;
  for (const CellResult& cell : report.cells)
    if (cell.control_missed || (cell.verdict != Verdict::PASS && cell.verdict != Verdict::CAUGHT))
      cells.push_back(&cell);
  std::stable_sort(cells.begin(), cells.end(), [](const CellResult* a, const CellResult* b) {
    return std::tuple(a->control_missed, a->verdict, a->score.max) >
           std::tuple(b->control_missed, b->verdict, b->score.max);
  });
  return cells;
}

Matrix matrix(const Report& report) {
  Matrix m;
  const auto index = [](auto& list, auto value) {
    const auto it = std::find(list.begin(), list.end(), value);
    if (it != list.end()) return static_cast<std::size_t>(it - list.begin());
    list.push_back(std::move(value));
    return list.size() - 1;
  };
  std::vector<std::string> stages;
  for (const CellResult& cell : report.cells) {
    index(stages, cell.c.stage);
    index(m.rows, std::pair(cell.c.stage, cell.c.schedule.text()));
  }
  std::stable_sort(m.rows.begin(), m.rows.end(), [&](const auto& a, const auto& b) {
    return index(stages, a.first) < index(stages, b.first);
  });
  for (const CellResult& cell : report.cells) {
    const auto row = index(m.rows, std::pair(cell.c.stage, cell.c.schedule.text()));
    MatrixEntry& entry = m.entries[{row, index(m.families, cell.c.family)}];
    if (cell.is_control) {
      ++entry.controls;
      entry.caught += cell.verdict == Verdict::CAUGHT;
      continue;
    }
    ++entry.cells;
    entry.loose += cell.loose;
    entry.score = std::max(entry.score, cell.score.max);
    if (!entry.worst || std::pair(cell.verdict, cell.score.max) >
                            std::pair(entry.worst->verdict, entry.worst->score.max))
      entry.worst = &cell;
  }
  return m;
}

std::vector<std::vector<const CellResult*>> ladders(const Report& report) {
  std::map<std::string, std::vector<const CellResult*>> groups;
  std::vector<std::string> order;
  for (const CellResult& cell : report.cells) {
    if (!cell.c.shape.cuts.empty()) continue;
    Case any_length = cell.c;
    any_length.shape.T = 1;
    const std::string key = any_length.id();
    if (groups.find(key) == groups.end()) order.push_back(key);
    groups[key].push_back(&cell);
  }
  std::vector<std::vector<const CellResult*>> out;
  for (const std::string& key : order) {
    auto& group = groups[key];
    if (group.size() < 2) continue;
    std::sort(group.begin(), group.end(),
              [](auto* a, auto* b) { return a->c.shape.T < b->c.shape.T; });
    out.push_back(std::move(group));
  }
  return out;
}

}  // namespace numgate
