// Writing of report.json; report_parse.cpp reads it, schema/report-1.schema.json describes it.
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/embedded.h"
#include "reports/report.h"

namespace numgate {
namespace {

using json = nlohmann::ordered_json;

// JSON has no infinity and no NaN: these are written as strings.
json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

json numbers(const std::vector<double>& xs) {
  json out = json::array();
  for (const double x : xs) out.push_back(number(x));
  return out;
}

template <class T>
json or_null(const std::optional<T>& x) {
  return x ? json(*x) : json();
}

// `name` is the exponent itself, so that a reader who wants no more finds a number.
void put_slope(json& j, const std::string& name, const std::optional<Slope>& slope) {
  j[name] = slope ? number(slope->value) : json();
  if (!slope) return;
  j[name + "_low"] = number(slope->low);
  j[name + "_high"] = number(slope->high);
  j[name + "_at_end"] = number(slope->at_end);
  j[name + "_end"] = slope->end;
}

json write(const Reason& r) {
  return {{"rule", r.rule},
          {"sites", r.sites},
          {"rank", or_null(r.rank)},
          {"token", or_null(r.token)},
          {"measured", number(r.measured)},
          {"limit", number(r.limit)},
          {"tensor", r.tensor},
          {"head", r.head},
          {"text", r.text},
          {"waived_by", r.waived_by}};
}

json write(const ErrorSummary& e, bool compared) {
  json j{{"relative", compared ? number(e.relative) : json()},
         {"projected", compared ? number(e.projected) : json()}};
  put_slope(j, "slope", e.slope);
  return j;
}

json write(const Curve& curve) {
  json token = json::array(), error = json::array(), shadow = json::array(), score = json::array();
  for (const CurvePoint& p : curve.points) {
    token.push_back(p.token);
    error.push_back(number(p.error));
    shadow.push_back(number(p.shadow));
    score.push_back(number(p.score));
  }
  return {{"rank", curve.rank},
          {"token", token},
          {"error", error},
          {"shadow", shadow},
          {"score", score}};
}

json write(const TensorResult& t) {
  json j{{"tensor", t.tensor},
         {"score", number(t.score)},
         {"score_null", number(t.score_null)},
         {"token_score", number(t.token_score)},
         {"token_null", number(t.token_null)},
         {"excess", number(t.excess)},
         {"equivalence", number(t.equivalence)},
         {"equivalence_null", number(t.equivalence_null)},
         {"differing", t.differing},
         {"error", write(t.error, true)},
         {"error_null", numbers(t.error_null)},
         {"loose", t.loose},
         {"curve_head", t.curve_head},
         {"curves", json::array()}};
  put_slope(j, "growth", t.growth);
  for (const Curve& curve : t.curves) j["curves"].push_back(write(curve));
  return j;
}

json write(const Timing& t) {
  return {{"inputs", number(t.inputs)},
          {"kernels", number(t.kernels)},
          {"truth", number(t.truth)},
          {"shadow", number(t.shadow)},
          {"judge", number(t.judge)}};
}

json write(const CellResult& cell) {
  const bool compared = !cell.tensors.empty();
  json j{{"case", cell.c.id()},
         {"verdict", name(cell.verdict)},
         {"reasons", json::array()},
         {"error", write(cell.error, compared)},
         {"budget", number(cell.budget)},
         {"score",
          {{"max", compared ? number(cell.score.max) : json()},
           {"token", compared ? number(cell.score.token) : json()},
           {"excess", compared ? number(cell.score.excess) : json()}}},
         {"growth", json::object()},
         {"loose", cell.loose},
         {"control", cell.is_control},
         {"control_missed", cell.control_missed},
         {"seconds", number(cell.seconds)},
         {"timing", write(cell.timing)},
         {"replay", cell.replay},
         {"tensors", json::array()},
         {"states", json::array()}};
  for (const Reason& r : cell.reasons) j["reasons"].push_back(write(r));
  put_slope(j["growth"], "position", cell.growth.position);
  put_slope(j["growth"], "context", cell.growth.context);
  for (const TensorResult& t : cell.tensors) j["tensors"].push_back(write(t));
  for (const StateScore& s : cell.states)
    j["states"].push_back({{"tensor", s.tensor},
                           {"head", s.head},
                           {"rank", s.rank},
                           {"score", number(s.score)},
                           {"null_scores", numbers(s.null_scores)}});
  return j;
}

json write(const Policy& policy) {
  json j{{"thresholds", json::object()}, {"budgets", json::array()}, {"waivers", json::array()}};
  for (const ThresholdInfo& info : threshold_infos())
    j["thresholds"][std::string(info.name)] = number(policy.thresholds.*info.member);
  for (const Budget& b : policy.budgets)
    j["budgets"].push_back(
        {{"plan", b.plan}, {"family", b.family}, {"value", number(b.value)}, {"reason", b.reason}});
  for (const Waiver& w : policy.waivers)
    j["waivers"].push_back({{"case", w.case_glob},
                            {"rule", w.rule},
                            {"owner", w.owner},
                            {"reason", w.reason},
                            {"expires", w.expires}});
  return j;
}

// Bytes that are not UTF-8 (from a command line, say) must not stop a report.
std::string dump(const json& j, int indent) {
  return j.dump(indent, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const CellResult& cell) { return dump(write(cell), -1); }

std::string to_json(const Report& report) {
  json j{{"schema_version", kReportSchemaVersion},
         {"verdict", name(report.verdict)},
         {"exit_code", static_cast<int>(exit_code(report))},
         {"tool_version", report.tool_version},
         {"command", report.command},
         {"profile", report.profile},
         {"backend", report.backend},
         {"target_context", report.policy.target_context},
         {"git_commit", report.git_commit},
         {"commit", report.git_commit},  // the name that every record gives it
         {"device", report.device},
         {"driver", report.driver},
         {"toolkit", report.toolkit},
         {"hardware", report.hardware},
         {"compiler", report.compiler},
         {"started", report.started},
         {"seconds", number(report.seconds)},
         {"timing", write(timing(report))},
         {"policy", write(report.policy)},
         {"controls", json::array()},
         {"cells", json::array()}};
  for (const Control& c : report.controls)
    j["controls"].push_back({{"case", c.glob},
                             {"rules", c.rules},
                             {"why", c.why},
                             {"caught", c.caught},
                             {"missed", c.missed}});
  // A number a line would triple the file.
  std::string text = dump(j, 1);
  static constexpr std::string_view kNone = "[]\n}";
  text.resize(text.size() - kNone.size());
  text += "[";
  for (std::size_t i = 0; i < report.cells.size(); ++i)
    text += (i ? ",\n  " : "\n  ") + to_json(report.cells[i]);
  return text + "\n ]\n}\n";
}

Timing& Timing::operator+=(const Timing& other) {
  inputs += other.inputs, kernels += other.kernels, truth += other.truth;
  shadow += other.shadow, judge += other.judge;
  return *this;
}

Timing timing(const Report& report) {
  Timing sum;
  for (const CellResult& cell : report.cells) sum += cell.timing;
  return sum;
}

Report trimmed(Report report) {
  for (CellResult& cell : report.cells)
    if (cell.verdict == Verdict::PASS && !cell.is_control)
      for (TensorResult& tensor : cell.tensors) tensor.curves.clear();
  return report;
}

std::string_view report_schema() { return embedded::report_schema_json; }

}  // namespace numgate
