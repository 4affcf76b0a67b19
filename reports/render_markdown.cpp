#include <fmt/format.h>

#include "reports/render.h"
#include "reports/render_text.h"

namespace numgate {
namespace {

constexpr std::size_t kMost = 60 * 1024;  // a comment on a forge holds 64 KiB
constexpr std::size_t kFailures = 10;

// Table cells and code spans end at these.
std::string cell_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|')
      out += "\\|";
    else if (c == '\n' || c == '\r')
      out += ' ';
    else if (c == '`')
      out += '\'';
    else if (c == '<')
      out += "&lt;";
    else
      out += c;
  }
  // One absurd name must not crowd out the rest.
  if (out.size() > 1000) out = out.substr(0, 1000) + "...";
  return out;
}

std::string matrix_section(const Report& report) {
  const Matrix m = matrix(report);
  std::string out = "\n## Schedules by families\n\nWorst verdict and score; controls apart.\n\n| |";
  for (const auto& family : m.families) out += " " + cell_text(family) + " |";
  out += "\n|---|";
  for (std::size_t i = 0; i < m.families.size(); ++i) out += "---|";
  for (std::size_t row = 0; row < m.rows.size(); ++row) {
    out += "\n| " + cell_text(m.rows[row].first + " " + m.rows[row].second) + " |";
    for (std::size_t column = 0; column < m.families.size(); ++column) {
      const auto it = m.entries.find({row, column});
      out += " ";
      if (it != m.entries.end()) {
        const MatrixEntry& e = it->second;
        if (e.worst) out += verdict_words(e.worst->verdict) + " " + number_text(e.score);
        if (e.loose) out += " LOOSE";
        if (e.controls) out += fmt::format(" ({}/{} caught)", e.caught, e.controls);
      }
      out += " |";
    }
  }
  return out + "\n";
}

std::string failures_section(const Report& report) {
  const auto cells = failures(report);
  if (cells.empty()) return "";
  std::string out =
      "\n## Failures\n\n| case | verdict | reason | place | suspect |\n|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < cells.size() && i < kFailures; ++i) {
    const Reason* r = worst_reason(*cells[i]);
    out +=
        fmt::format("| `{}` | {} | {} | {} | {} |\n", cell_text(cells[i]->c.id()),
                    cells[i]->control_missed ? "control missed" : verdict_words(cells[i]->verdict),
                    r ? cell_text(r->rule + ": " + r->text) : "", r ? place_text(*r) : "",
                    r ? cell_text(join(r->sites, ", ")) : "");
  }
  if (cells.size() > kFailures)
    out += fmt::format("\nand {} more; report.html and report.json have them all.\n",
                       cells.size() - kFailures);
  return out;
}

std::string controls_section(const Report& report) {
  if (report.controls.empty()) return "";
  std::string out = "\n## Controls\n\n| planted fault | must fail on | |\n|---|---|---|\n";
  for (const Control& c : report.controls)
    out += fmt::format("| {} (`{}`) | {} | {} |\n", cell_text(c.why), cell_text(c.glob),
                       cell_text(join(c.rules, ", ")),
                       c.caught   ? "CAUGHT"
                       : c.missed ? "**MISSED**"
                                  : "not run");
  return out;
}

}  // namespace

std::string render_markdown(const Report& report) {
  const Findings f = findings(report);
  std::string out = fmt::format(
      "# numgate: {}\n\n**{}.** {}\n\n- Controls: {}\n- Not verified: {}\n- Profile {}, {} "
      "backend, "
      "commit `{}`, {}\n",
      verdict_words(report.verdict), headline(report), f.verified, f.controls, f.not_verified,
      cell_text(report.profile), cell_text(report.backend), cell_text(report.git_commit),
      cell_text(report.started));
  // Whole sections are dropped, never parts of a table.
  for (const std::string& section :
       {failures_section(report), controls_section(report), matrix_section(report)}) {
    static constexpr std::string_view kDropped = "\n(A section was too long for this summary.)\n";
    if (out.size() + section.size() + kDropped.size() <= kMost)
      out += section;
    else if (!out.ends_with(kDropped))
      out += kDropped;
  }
  return out;
}

}  // namespace numgate
