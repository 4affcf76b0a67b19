// Reading of report.json. Unknown members are ignored: a writer of the same major version may add
// some.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/errors.h"
#include "reports/report.h"

namespace numgate {
namespace {

using nlohmann::json;

// A member of the document together with its path, for messages.
class Reader {
 public:
  Reader(const json& value, std::string path) : value_(value), path_(std::move(path)) {}

  Reader operator[](const std::string& key) const {
    if (!value_.is_object()) fail("must be an object");
    const auto it = value_.find(key);
    const std::string path = path_ + "." + key;
    if (it == value_.end()) throw UsageError(path + ": missing");
    return {*it, path};
  }

  bool has(const std::string& key) const { return value_.is_object() && value_.contains(key); }
  bool is_null() const { return value_.is_null(); }

  template <class Each>
  void each(Each use) const {
    if (!value_.is_array()) fail("must be an array");
    for (std::size_t i = 0; i < value_.size(); ++i)
      use(Reader(value_[i], path_ + "[" + std::to_string(i) + "]"));
  }

  std::string text() const {
    if (!value_.is_string()) fail("must be a string");
    return value_.get<std::string>();
  }
  bool boolean() const {
    if (!value_.is_boolean()) fail("must be true or false");
    return value_.get<bool>();
  }
  std::int64_t integer() const {
    if (!value_.is_number_integer() ||
        (value_.is_number_unsigned() &&
         value_.get<std::uint64_t>() > std::uint64_t(std::numeric_limits<std::int64_t>::max())))
      fail("must be a whole number of 64 bits");
    return value_.get<std::int64_t>();
  }
  std::int32_t rank() const {
    const std::int64_t n = integer();
    if (n < 0 || n > std::numeric_limits<std::int32_t>::max()) fail("must be a rank");
    return static_cast<std::int32_t>(n);
  }
  double number() const {
    if (value_ == "inf") return std::numeric_limits<double>::infinity();
    if (value_ == "-inf") return -std::numeric_limits<double>::infinity();
    if (value_ == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (!value_.is_number()) fail("must be a number, \"inf\", \"-inf\" or \"nan\"");
    return value_.get<double>();
  }
  double number_or_zero() const { return is_null() ? 0 : number(); }
  std::vector<double> numbers() const {
    std::vector<double> out;
    each([&](const Reader& r) { out.push_back(r.number()); });
    return out;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    each([&](const Reader& r) { out.push_back(r.text()); });
    return out;
  }
  std::optional<Slope> slope(const std::string& name) const {
    if ((*this)[name].is_null()) return std::nullopt;
    return Slope{(*this)[name].number(), (*this)[name + "_low"].number(),
                 (*this)[name + "_high"].number(), (*this)[name + "_at_end"].number(),
                 (*this)[name + "_end"].integer()};
  }

  // What a parser of the text thinks of it, at this path.
  template <class Parse>
  auto parsed(Parse parse) const {
    const std::string word = text();
    try {
      return parse(word);
    } catch (const UsageError& e) {
      throw UsageError(path_ + ": " + e.what());
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    std::string shown = value_.dump(-1, ' ', false, json::error_handler_t::replace);
    if (shown.size() > 60) shown = shown.substr(0, 60) + "...";
    throw UsageError(path_, shown, why);
  }

 private:
  const json& value_;
  std::string path_;
};

Reason read_reason(const Reader& r) {
  Reason reason;
  reason.rule = r["rule"].text();
  r["rule"].parsed([](const std::string& rule) { return verdict_of_rule(rule); });
  reason.sites = r["sites"].texts();
  if (!r["rank"].is_null()) reason.rank = r["rank"].rank();
  if (!r["token"].is_null()) reason.token = r["token"].integer();
  reason.measured = r["measured"].number();
  reason.limit = r["limit"].number();
  reason.tensor = r["tensor"].text();
  reason.head = r["head"].integer();
  reason.text = r["text"].text();
  reason.waived_by = r["waived_by"].text();
  return reason;
}

ErrorSummary read_error(const Reader& r) {
  return {r["relative"].number_or_zero(), r["projected"].number_or_zero(), r.slope("slope")};
}

Curve read_curve(const Reader& r) {
  Curve curve{r["rank"].rank(), {}};
  r["token"].each([&](const Reader& t) { curve.points.push_back({t.integer(), 0, 0, 0}); });
  const auto column = [&](const char* name, double CurvePoint::*member) {
    const std::vector<double> values = r[name].numbers();
    if (values.size() != curve.points.size()) r[name].fail("must have as many items as token");
    for (std::size_t i = 0; i < values.size(); ++i) curve.points[i].*member = values[i];
  };
  column("error", &CurvePoint::error);
  column("shadow", &CurvePoint::shadow);
  column("score", &CurvePoint::score);
  return curve;
}

TensorResult read_tensor(const Reader& r) {
  TensorResult t;
  t.tensor = r["tensor"].text();
  t.score = r["score"].number();
  t.score_null = r["score_null"].number();
  t.token_score = r["token_score"].number();
  t.token_null = r["token_null"].number();
  t.excess = r["excess"].number();
  t.equivalence = r["equivalence"].number();
  t.equivalence_null = r["equivalence_null"].number();
  t.differing = r["differing"].integer();
  t.error = read_error(r["error"]);
  if (r.has("error_null")) t.error_null = r["error_null"].numbers();  // since 1.1
  t.growth = r.slope("growth");
  t.loose = r["loose"].boolean();
  t.curve_head = r["curve_head"].integer();
  r["curves"].each([&](const Reader& c) { t.curves.push_back(read_curve(c)); });
  return t;
}

Timing read_timing(const Reader& r) {
  return {r["inputs"].number(), r["kernels"].number(), r["truth"].number(), r["shadow"].number(),
          r["judge"].number()};
}

CellResult read_cell(const Reader& r) {
  CellResult cell;
  cell.c = r["case"].parsed([](const std::string& id) { return parse_case(id); });
  cell.verdict = r["verdict"].parsed([](const std::string& v) { return parse_verdict(v); });
  r["reasons"].each([&](const Reader& reason) { cell.reasons.push_back(read_reason(reason)); });
  cell.error = read_error(r["error"]);
  cell.budget = r["budget"].number();
  cell.score = {r["score"]["max"].number_or_zero(), r["score"]["token"].number_or_zero(),
                r["score"]["excess"].number_or_zero()};
  cell.growth = {r["growth"].slope("position"), r["growth"].slope("context")};
  cell.loose = r["loose"].boolean();
  cell.is_control = r["control"].boolean();
  cell.control_missed = r["control_missed"].boolean();
  cell.seconds = r["seconds"].number();
  if (r.has("timing")) cell.timing = read_timing(r["timing"]);  // since 1.1
  cell.replay = r["replay"].text();
  r["tensors"].each([&](const Reader& t) { cell.tensors.push_back(read_tensor(t)); });
  r["states"].each([&](const Reader& s) {
    cell.states.push_back({s["tensor"].text(), s["head"].integer(), s["rank"].rank(),
                           s["score"].number(), s["null_scores"].numbers()});
  });
  return cell;
}

// Unlike parse_policy this is history: nothing in it can be too loose or have expired.
Policy read_policy(const Reader& r) {
  Policy policy;
  for (const ThresholdInfo& info : threshold_infos())
    policy.thresholds.*info.member = r["thresholds"][std::string(info.name)].number();
  r["budgets"].each([&](const Reader& b) {
    policy.budgets.push_back(
        {b["plan"].text(), b["family"].text(), b["value"].number(), b["reason"].text()});
  });
  r["waivers"].each([&](const Reader& w) {
    policy.waivers.push_back({w["case"].text(), w["rule"].text(), w["owner"].text(),
                              w["reason"].text(), w["expires"].text()});
  });
  return policy;
}

json parse(std::string_view text, const char* what) {
  try {
    return json::parse(text);
  } catch (const json::exception& e) {
    throw UsageError(std::string(what) + " is truncated or not JSON: " + e.what());
  }
}

}  // namespace

CellResult parse_cell(std::string_view text) {
  const json j = parse(text, "cell");
  return read_cell({j, "cell"});
}

Report parse_report(std::string_view text) {
  const json j = parse(text, "report");
  const Reader r(j, "report");
  const std::string version = r["schema_version"].text();
  const std::string_view major = kReportSchemaVersion.substr(0, kReportSchemaVersion.find('.') + 1);
  if (!version.starts_with(major))
    r["schema_version"].fail("this numgate reads " + std::string(major) + "x");
  Report report;
  report.verdict = r["verdict"].parsed([](const std::string& v) { return parse_verdict(v); });
  report.tool_version = r["tool_version"].text();
  report.command = r["command"].text();
  report.profile = r["profile"].text();
  report.backend = r["backend"].text();
  report.git_commit = r["git_commit"].text();
  report.hardware = r["hardware"].text();
  report.compiler = r["compiler"].text();
  if (r.has("device")) {  // since 1.1
    report.device = r["device"].text();
    report.driver = r["driver"].text();
    report.toolkit = r["toolkit"].text();
  }
  report.started = r["started"].text();
  report.seconds = r["seconds"].number();
  report.policy = read_policy(r["policy"]);
  report.policy.target_context = r["target_context"].integer();
  r["controls"].each([&](const Reader& c) {
    report.controls.push_back({c["case"].text(), c["rules"].texts(), c["why"].text(),
                               c["caught"].boolean(), c["missed"].boolean()});
  });
  r["cells"].each([&](const Reader& cell) { report.cells.push_back(read_cell(cell)); });
  return report;
}

}  // namespace numgate
