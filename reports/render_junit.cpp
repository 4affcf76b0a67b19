#include <fmt/format.h>

#include <pugixml.hpp>
#include <sstream>

#include "reports/render.h"
#include "reports/render_text.h"

namespace numgate {
namespace {

// XML 1.0 has no place for most control characters, not even escaped; text that is not UTF-8 is cut
// to ASCII.
std::string xml_text(std::string_view text) {
  bool ascii = true;
  for (const char c : text) ascii = ascii && static_cast<unsigned char>(c) < 0x80;
  // pugixml's own check of UTF-8: what survives the way to wide characters and back was
  // well-formed.
  const std::string whole(text);
  const bool utf8 = ascii || pugi::as_utf8(pugi::as_wide(whole)) == whole;
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    const bool control = (u < 0x20 && c != '\t' && c != '\n' && c != '\r') || u == 0x7f;
    out += control || (u >= 0x80 && !utf8) ? '?' : c;
  }
  return out;
}

void put(pugi::xml_node node, const char* name, std::string_view value) {
  node.append_attribute(name).set_value(xml_text(value).c_str());
}

void property(pugi::xml_node properties, const char* name, std::string_view value) {
  pugi::xml_node node = properties.append_child("property");
  put(node, "name", name);
  put(node, "value", value);
}

}  // namespace

std::string render_junit(const Report& report) {
  pugi::xml_document document;
  pugi::xml_node suite = document.append_child("testsuites").append_child("testsuite");
  int failed = 0, errors = 0, skipped = 0;
  put(suite, "name", "numgate " + report.profile);
  put(suite, "timestamp", report.started);
  put(suite, "time", fmt::format("{:.3f}", report.seconds));

  pugi::xml_node properties = suite.append_child("properties");
  property(properties, "verdict", name(report.verdict));
  property(properties, "backend", report.backend);
  property(properties, "target_context", std::to_string(report.policy.target_context));
  property(properties, "git_commit", report.git_commit);
  property(properties, "hardware", report.hardware);

  for (const CellResult& cell : report.cells) {
    pugi::xml_node test = suite.append_child("testcase");
    put(test, "classname", cell.c.stage + "." + cell.c.schedule.text());
    put(test, "name", cell.c.id());
    put(test, "time", fmt::format("{:.3f}", cell.seconds));
    std::string text;
    for (const Reason& r : cell.reasons) {
      text += r.rule + ": " + r.text;
      if (!r.sites.empty()) text += " [" + join(r.sites, ", ") + "]";
      if (!r.waived_by.empty()) text += " (waived by " + r.waived_by + ")";
      text += "\n";
    }
    text += cell.replay + "\n";
    const char* kind = nullptr;
    if (cell.control_missed || cell.verdict == Verdict::FAIL)
      kind = "failure", ++failed;
    else if (cell.verdict == Verdict::ERROR || cell.verdict == Verdict::TIMEOUT)
      kind = "error", ++errors;
    else if (cell.verdict == Verdict::NOT_VERIFIED)
      kind = "skipped", ++skipped;
    if (kind) {
      const Reason* worst = worst_reason(cell);
      pugi::xml_node outcome = test.append_child(kind);
      put(outcome, "message",
          cell.control_missed ? "a control was not caught"
          : worst             ? worst->text
                              : "no reason given");
      if (kind != std::string_view("skipped"))
        put(outcome, "type", worst ? worst->rule : "control");
      outcome.text().set(xml_text(text).c_str());
    } else if (!cell.reasons.empty()) {
      test.append_child("system-out").text().set(xml_text(text).c_str());
    }
  }
  put(suite, "tests", std::to_string(report.cells.size()));
  put(suite, "failures", std::to_string(failed));
  put(suite, "errors", std::to_string(errors));
  put(suite, "skipped", std::to_string(skipped));
  std::ostringstream out;
  document.save(out, " ");
  return out.str();
}

}  // namespace numgate
