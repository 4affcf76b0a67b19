#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/embedded.h"
#include "reports/growth_table.h"
#include "reports/html_cells.h"
#include "reports/render.h"
#include "reports/render_text.h"

namespace numgate {
namespace {

std::string fact(std::string_view word, const std::string& value) {
  return value.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>\n", word, html_text(value));
}

std::string timing_fact(const Report& report) {
  const Timing t = timing(report);
  if (t.total() == 0) return "";
  return fact("Cells took", fmt::format("inputs {:.0f} s, kernels {:.0f} s, truth {:.0f} s, "
                                        "shadows {:.0f} s, judging {:.0f} s",
                                        t.inputs, t.kernels, t.truth, t.shadow, t.judge));
}

std::string facts(const Report& report) {
  return fact("Profile", report.profile) + fact("Backend", report.backend) +
         fact("Target context", count_text(report.policy.target_context) + " tokens") +
         fact("Device", report.device) + fact("Driver", report.driver) +
         fact("Toolkit", report.toolkit) + fact("Commit", report.git_commit) +
         fact("Hardware", report.hardware) + fact("Compiler", report.compiler) +
         fact("numgate", report.tool_version) + fact("Started", report.started) +
         fact("Took", fmt::format("{:.0f} s", report.seconds)) + timing_fact(report) +
         fact("Command", report.command);
}

std::string matrix_table(const Report& report) {
  const Matrix m = matrix(report);
  std::string out = "<table class=\"matrix\"><thead><tr><th scope=\"col\">schedule</th>";
  for (const auto& family : m.families)
    out += "<th scope=\"col\">" + breakable(html_text(family)) + "</th>";
  out += "</tr></thead><tbody>\n";
  std::string stage;
  for (std::size_t row = 0; row < m.rows.size(); ++row) {
    if (m.rows[row].first != stage) {
      stage = m.rows[row].first;
      out += fmt::format("<tr><th class=\"stage\" colspan=\"{}\">{}</th></tr>\n",
                         m.families.size() + 1, html_text(stage));
    }
    out += "<tr><th scope=\"row\">" + html_text(m.rows[row].second) + "</th>";
    for (std::size_t column = 0; column < m.families.size(); ++column) {
      const auto it = m.entries.find({row, column});
      if (it == m.entries.end()) {
        out += "<td></td>";
        continue;
      }
      const MatrixEntry& e = it->second;
      if (e.worst)
        out += fmt::format("<td class=\"{}\"><a href=\"#{}\"><b>{}{}</b>{}</a>",
                           verdict_class(*e.worst), cell_anchor(report, *e.worst),
                           verdict_words(e.worst->verdict), e.loose ? " LOOSE" : "",
                           e.worst->tensors.empty() ? "" : "score " + number_text(e.score));
      else
        out += "<td>";
      if (e.controls)
        out += fmt::format("<small>{} of {} controls caught</small>", e.caught, e.controls);
      out += "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table>";
}

std::string controls_section(const Report& report) {
  if (report.controls.empty()) return "";
  std::string out =
      "<section id=\"controls\"><h2>Controls</h2>\n<p class=\"note\">Planted faults. The gate is "
      "trusted because it catches them, for the reasons named beforehand.</p>\n<div "
      "class=\"scroll\"><table><tr><th>planted fault</th><th>must fail "
      "on</th><th>result</th></tr>\n";
  for (const Control& c : report.controls)
    out += fmt::format(
        "<tr><td>{}<br><code>{}</code></td><td>{}</td><td><span class=\"tag "
        "{}\">{}</span></td></tr>\n",
        html_text(c.why), html_text(c.glob), html_text(join(c.rules, ", ")),
        c.caught   ? "good"
        : c.missed ? "bad"
                   : "open",
        c.caught   ? "CAUGHT"
        : c.missed ? "MISSED"
                   : "NOT RUN");
  out += "</table></div>\n";
  for (const CellResult& cell : report.cells)
    if (cell.is_control) out += cell_article(report, cell);
  return out + "</section>\n";
}

std::string failures_section(const Report& report) {
  std::string out;
  std::size_t shown = 0, total = 0;
  for (const CellResult* cell : failures(report)) {
    if (cell->is_control) continue;  // it stands among the controls
    if (++total <= kMostArticles) {
      out += cell_article(report, *cell);
      ++shown;
    }
  }
  if (total == 0) return "";
  return "<section id=\"failures\"><h2>Not passed</h2>\n" + out +
         (total > shown ? fmt::format("<p>The worst {} are shown; {} more are in the table of all "
                                      "cases.</p>\n",
                                      shown, total - shown)
                        : "") +
         "</section>\n";
}

std::string growth_section(const Report& report) {
  const auto groups = ladders(report);
  if (groups.empty()) return "";
  std::vector<std::int64_t> lengths;
  for (const auto& group : groups)
    for (const CellResult* cell : group) lengths.push_back(cell->c.shape.T);
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  std::string out =
      "<section id=\"growth\"><h2>Growth by context</h2>\n<p class=\"note\">Score, and below it "
      "the "
      "relative error, of the same case at each length. The exponents are fitted to the score "
      "along "
      "the tokens of the longest case, and to its final states over the ladder.</p>\n<div "
      "class=\"scroll\"><table><tr><th>case</th>";
  for (const std::int64_t T : lengths) out += "<th class=\"n\">" + count_text(T) + "</th>";
  out += "<th class=\"n\">by position</th><th class=\"n\">by context</th></tr>\n";
  for (const auto& group : groups) {
    const CellResult& longest = *group.back();
    out += fmt::format("<tr><td><code>{}</code></td>", html_text(ladder_text(longest.c)));
    for (const std::int64_t T : lengths) {
      const auto it = std::find_if(group.begin(), group.end(),
                                   [T](const CellResult* cell) { return cell->c.shape.T == T; });
      if (it == group.end())
        out += "<td></td>";
      else
        out += fmt::format(
            "<td class=\"n {}\">{}<br><small>{}{}</small></td>", verdict_class(**it),
            number_text((*it)->score.max), number_text((*it)->error.relative),
            (*it)->verdict == Verdict::PASS ? "" : "<br>" + verdict_words((*it)->verdict));
    }
    out += "<td class=\"n\">" + slope_text(longest.growth.position) + "</td><td class=\"n\">" +
           slope_text(longest.growth.context) + "</td></tr>\n";
  }
  return out + "</table></div></section>\n";
}

// Errors that short contexts predict for the target, next to what was measured there.
std::string prediction_section(const Report& report) {
  const auto rows = growth_table(report);
  if (rows.empty()) return "";
  const auto lengths = lengths_of(rows);
  std::string out = fmt::format(
      "<section id=\"prediction\"><h2>Errors by context</h2>\n<p class=\"note\">Relative error of "
      "each output at each length. The exponent is fitted up to {} tokens and projected to {}, "
      "with "
      "its 99 % interval; an error of 1 is a tensor that is lost.</p>\n<div "
      "class=\"scroll\"><table><tr><th>case</th><th>tensor</th>",
      count_text(kFitUpTo), count_text(report.policy.target_context));
  for (const std::int64_t T : lengths) out += "<th class=\"n\">" + count_text(T) + "</th>";
  out +=
      "<th class=\"n\">exponent</th><th class=\"n\">projected</th><th "
      "class=\"n\">measured</th></tr>\n";
  std::string ladder;
  for (const GrowthRow& row : rows) {
    out += fmt::format("<tr><td>{}</td><td>{}</td>",
                       row.ladder == ladder ? "" : "<code>" + html_text(row.ladder) + "</code>",
                       html_text(row.tensor));
    ladder = row.ladder;
    for (const std::int64_t T : lengths) {
      const auto it = std::find_if(row.errors.begin(), row.errors.end(),
                                   [T](const auto& e) { return e.first == T; });
      out += "<td class=\"n\">" + (it == row.errors.end() ? "" : number_text(it->second)) + "</td>";
    }
    out += "<td class=\"n\">" + slope_text(row.slope) + "</td><td class=\"n\">" +
           (row.predicted
                ? fmt::format("{}<br><small>{} to {}</small>", number_text(row.predicted->value),
                              number_text(row.predicted->low), number_text(row.predicted->high))
                : "") +
           "</td><td class=\"n\">" + (row.measured ? number_text(*row.measured) : "") +
           "</td></tr>\n";
  }
  return out + "</table></div></section>\n";
}

std::string policy_section(const Report& report) {
  std::string out =
      "<div class=\"scroll\"><table><tr><th>threshold</th><th "
      "class=\"n\">value</th><th>because</th></tr>\n";
  for (const ThresholdInfo& info : threshold_infos()) {
    const double value = report.policy.thresholds.*info.member;
    const double usual = default_policy().thresholds.*info.member;
    out += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n", info.name,
                       number_text(value),
                       value == usual ? html_text(threshold_reason(info.name))
                                      : "set by this policy; the default is " + number_text(usual));
  }
  out +=
      "</table></div>\n<h3>Error budgets</h3>\n<div class=\"scroll\"><table><tr><th>plan</th><th>"
      "family</th><th class=\"n\">budget</th><th>because</th></tr>\n";
  for (const Budget& b : report.policy.budgets)
    out += fmt::format(
        "<tr><td><code>{}</code></td><td><code>{}</code></td><td class=\"n\">{}</td><td>"
        "{}</td></tr>\n",
        html_text(b.plan), html_text(b.family), number_text(b.value), html_text(b.reason));
  out += "</table></div>\n<h3>Waivers</h3>\n";
  if (report.policy.waivers.empty()) return out + "<p>None.</p>\n";
  out +=
      "<div class=\"scroll\"><table><tr><th>case</th><th>rule</th><th>owner</th><th>expires</th>"
      "<th>because</th><th class=\"n\">used</th></tr>\n";
  for (const Waiver& w : report.policy.waivers) {
    int used = 0;
    for (const CellResult& cell : report.cells)
      for (const Reason& r : cell.reasons)
        used += r.waived_by == w.owner && r.rule == w.rule && glob_match(w.case_glob, cell.c.id());
    out += fmt::format(
        "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td "
        "class=\"n\">{}</td></tr>\n",
        html_text(w.case_glob), html_text(w.rule), html_text(w.owner), html_text(w.expires),
        html_text(w.reason), used);
  }
  return out + "</table></div>\n";
}

// Replaces each {{name}} of the page; values are not searched for names again.
std::string fill(std::string_view page,
                 const std::map<std::string, std::string, std::less<>>& values) {
  std::string out;
  while (true) {
    const auto open = page.find("{{");
    out += page.substr(0, open);
    if (open == std::string_view::npos) return out;
    const auto close = page.find("}}", open);
    out += values.at(std::string(page.substr(open + 2, close - open - 2)));
    page.remove_prefix(close + 2);
  }
}

}  // namespace

std::string render_html(const Report& report) {
  const Findings f = findings(report);
  return fill(embedded::page_html, {{"verdict", verdict_words(report.verdict)},
                                    {"verdict_class", verdict_class(report.verdict)},
                                    {"headline", html_text(headline(report))},
                                    {"verified", html_text(f.verified)},
                                    {"controls_found", html_text(f.controls)},
                                    {"not_verified", html_text(f.not_verified)},
                                    {"facts", facts(report)},
                                    {"matrix", matrix_table(report)},
                                    {"controls", controls_section(report)},
                                    {"failures", failures_section(report)},
                                    {"growth", growth_section(report) + prediction_section(report)},
                                    {"cell_count", fmt::format("{} cases", report.cells.size())},
                                    {"cells", cells_table(report)},
                                    {"policy", policy_section(report)},
                                    {"charts", charts_json(report)},
                                    {"css", std::string(embedded::page_css)},
                                    {"js", std::string(embedded::page_js)},
                                    {"chart_js", std::string(embedded::chart_js)}});
}

}  // namespace numgate
