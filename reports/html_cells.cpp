#include "reports/html_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/render_text.h"

namespace numgate {
namespace {

using json = nlohmann::json;

std::size_t index_of(const Report& report, const CellResult& cell) {
  return static_cast<std::size_t>(&cell - report.cells.data());
}

bool has_article(const Report& report, const CellResult& cell) {
  if (cell.is_control) return true;
  std::size_t shown = 0;
  for (const CellResult* failure : failures(report)) {
    if (failure->is_control) continue;
    if (shown++ == kMostArticles) return false;
    if (failure == &cell) return true;
  }
  return false;
}

// The tensor whose curves say most: the largest score among those that have any.
const TensorResult* charted(const CellResult& cell) {
  const TensorResult* best = nullptr;
  for (const TensorResult& t : cell.tensors)
    if (!t.curves.empty() && (!best || t.score > best->score)) best = &t;
  return best;
}

std::string verdict_tag(const CellResult& cell) {
  return fmt::format("<span class=\"tag {}\">{}</span>", verdict_class(cell),
                     cell.control_missed ? "MISSED" : verdict_words(cell.verdict));
}

std::string reasons_table(const CellResult& cell) {
  std::string out =
      "<div class=\"scroll\"><table><tr><th>rule</th><th class=\"n\">measured</th><th class=\"n\">"
      "limit</th><th>first beyond it</th><th>suspect</th><th>what</th></tr>\n";
  for (const Reason& r : cell.reasons) {
    const bool numbers = r.measured != 0 || r.limit != 0;
    std::string sites;
    for (const std::string& site : r.sites)
      sites += (sites.empty() ? "<code>" : " <code>") + html_text(site) + "</code>";
    out += fmt::format(
        "<tr><td><b>{}</b>{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td class=\"place\">{}</td><td>{}</td><td>{}"
        "</td></tr>\n",
        html_text(r.rule),
        r.waived_by.empty() ? "" : "<br><small>waived by " + html_text(r.waived_by) + "</small>",
        numbers ? number_text(r.measured) : "", numbers ? number_text(r.limit) : "", place_text(r),
        sites, html_text(r.text));
  }
  return out + "</table></div>\n";
}

// The last point of each rank: what the charts show, for readers without them.
std::string ranks_table(const TensorResult& t) {
  std::string out = fmt::format(
      "<details><summary>Figures by rank, at its last window ({})</summary><div "
      "class=\"scroll\"><table>"
      "<tr><th class=\"n\">rank</th><th class=\"n\">token</th><th class=\"n\">error</th><th "
      "class=\"n\">shadow</th><th class=\"n\">score</th></tr>\n",
      html_text(t.tensor));
  for (const Curve& curve : t.curves) {
    if (curve.points.empty()) continue;
    const CurvePoint& p = curve.points.back();
    out += fmt::format(
        "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td>"
        "<td class=\"n\">{}</td></tr>\n",
        curve.rank, count_text(p.token), number_text(p.error), number_text(p.shadow),
        number_text(p.score));
  }
  return out + "</table></div></details>\n";
}

json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : "inf";
}

json slope_json(const std::optional<Slope>& s) {
  if (!s) return {};
  return {{"value", s->value}, {"low", s->low}, {"at_end", s->at_end}, {"end", s->end}};
}

json chart_json(const Report& report, const CellResult& cell, const TensorResult& t) {
  const Thresholds& limits = report.policy.thresholds;
  json j{{"id", fmt::format("chart-{}", index_of(report, cell))},
         {"tensor", t.tensor},
         {"head", t.curve_head},
         {"target", report.policy.target_context},
         {"relative", number(t.error.relative)},
         {"projected", number(t.error.projected)},
         {"budget", cell.budget},
         {"limit", std::max(limits.score, limits.score_null * t.score_null)},
         {"growth_limit", limits.growth},
         {"slope", slope_json(t.error.slope)},
         {"growth", slope_json(t.growth)},
         {"curves", json::array()}};
  for (const Curve& curve : t.curves) {
    json c{{"rank", curve.rank}};
    for (const CurvePoint& p : curve.points) {
      c["token"].push_back(p.token);
      c["error"].push_back(number(p.error));
      c["shadow"].push_back(number(p.shadow));
      c["score"].push_back(number(p.score));
    }
    j["curves"].push_back(std::move(c));
  }
  return j;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  return out;
}

std::string breakable(std::string html) {
  for (std::size_t i = html.find('_'); i != std::string::npos; i = html.find('_', i + 1))
    html.insert(i + 1, "<wbr>");
  return html;
}

const char* verdict_class(Verdict v) {
  switch (v) {
    case Verdict::PASS:
    case Verdict::CAUGHT:
      return "good";
    case Verdict::FAIL:
    case Verdict::ERROR:
      return "bad";
    default:
      return "open";
  }
}

const char* verdict_class(const CellResult& cell) {
  if (cell.control_missed) return "bad";
  return cell.loose && cell.verdict == Verdict::PASS ? "open" : verdict_class(cell.verdict);
}

std::string slope_text(const std::optional<Slope>& slope) {
  if (!slope) return "";
  // Rounded first, so that no -0.00 is shown.
  const auto two = [](double x) { return fmt::format("{:.2f}", std::round(x * 100) / 100 + 0.0); };
  return two(slope->value) + "<br><small>" + two(slope->low) + " to " + two(slope->high) +
         "</small>";
}

std::string ladder_text(const Case& c) {
  return c.stage + "/" + c.schedule.text() + "/" + c.plan.text() + "/" + c.family +
         fmt::format(" K={} V={} HV={} seed={}", c.shape.K, c.shape.V, c.shape.HV, c.seed);
}

std::string cell_anchor(const Report& report, const CellResult& cell) {
  return fmt::format("{}-{}", has_article(report, cell) ? "cell" : "row", index_of(report, cell));
}

std::string cell_article(const Report& report, const CellResult& cell) {
  const std::size_t index = index_of(report, cell);
  std::string out =
      fmt::format("<article class=\"{}\" id=\"cell-{}\">\n<h3>{} <code>{}</code></h3>\n",
                  verdict_class(cell), index, verdict_tag(cell), html_text(cell.c.id()));
  if (cell.control_missed)
    out +=
        "<p><b>This control was not caught:</b> it passed, or failed without the reasons expected "
        "of it.</p>\n";
  if (!cell.reasons.empty()) out += reasons_table(cell);
  if (const TensorResult* t = charted(cell)) {
    out += fmt::format(
        "<div class=\"charts\"><div class=\"chart\"><canvas id=\"chart-{0}-error\" role=\"img\" "
        "aria-label=\"error and shadow against token position\"></canvas></div><div "
        "class=\"chart\"><canvas "
        "id=\"chart-{0}-score\" role=\"img\" aria-label=\"score against token "
        "position\"></canvas></div></div>\n",
        index);
    out += ranks_table(*t);
  }
  return out + "<p class=\"replay\">Replay: <code>" + html_text(cell.replay) +
         "</code></p>\n</article>\n";
}

std::string cells_table(const Report& report) {
  std::string out =
      "<table><tr><th>case</th><th>verdict</th><th class=\"n\">score</th><th class=\"n\">token "
      "score</th><th class=\"n\">growth</th><th class=\"n\">error</th><th "
      "class=\"n\">projected</th><th "
      "class=\"n\">budget</th><th class=\"n\">seconds</th></tr>\n";
  for (const CellResult& cell : report.cells) {
    const bool compared = !cell.tensors.empty();
    std::string id = "<code>" + html_text(cell.c.id()) + "</code>";
    if (has_article(report, cell))
      id = fmt::format("<a href=\"#cell-{}\">{}</a>", index_of(report, cell), id);
    out += fmt::format("<tr id=\"row-{}\"><td>{}</td><td>{}{}</td>", index_of(report, cell), id,
                       verdict_tag(cell), cell.loose ? " LOOSE" : "");
    for (const std::string& value :
         {number_text(cell.score.max), number_text(cell.score.token),
          slope_text(cell.growth.position), number_text(cell.error.relative),
          number_text(cell.error.projected), number_text(cell.budget)})
      out += "<td class=\"n\">" + (compared ? value : "") + "</td>";
    out += fmt::format("<td class=\"n\">{:.1f}</td></tr>\n", cell.seconds);
  }
  return out + "</table>";
}

std::string charts_json(const Report& report) {
  json all = json::array();
  for (const CellResult& cell : report.cells)
    if (const TensorResult* t = charted(cell); t && has_article(report, cell))
      all.push_back(chart_json(report, cell, *t));
  std::string text = all.dump(-1, ' ', false, json::error_handler_t::replace);
  // `</script>` inside a string would end the element.
  for (std::size_t i = text.find('<'); i != std::string::npos; i = text.find('<', i))
    text.replace(i, 1, "\\u003c");
  return text;
}

}  // namespace numgate
