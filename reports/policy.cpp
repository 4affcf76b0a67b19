#include "reports/policy.h"

#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/case_id.h"
#include "core/errors.h"
#include "reports/embedded.h"
#include "reports/verdict.h"

namespace numgate {
namespace {

using nlohmann::json;

// Members of `object` must be among `known`.
void check_members(const json& object, const std::string& field,
                   const std::set<std::string>& known) {
  if (!object.is_object()) throw UsageError(field, object.dump(), "must be an object");
  for (const auto& [key, value] : object.items())
    if (!known.count(key)) throw UsageError(field, key, "unknown member");
}

double positive(const json& value, const std::string& field) {
  if (!value.is_number()) throw UsageError(field, value.dump(), "must be a number");
  const double number = value.get<double>();
  if (!std::isfinite(number) || number <= 0)
    throw UsageError(field, value.dump(), "must be positive");
  return number;
}

std::string word(const json& object, const std::string& field, const std::string& member) {
  const auto it = object.find(member);
  if (it == object.end()) throw UsageError(field, member, "missing");
  if (!it->is_string() || it->get_ref<const std::string&>().empty())
    throw UsageError(field + "." + member, it->dump(), "must be a non-empty string");
  return it->get<std::string>();
}

bool is_date(const std::string& text) {
  int y = 0, m = 0, d = 0, used = 0;
  if (text.size() != 10 || std::sscanf(text.c_str(), "%4d-%2d-%2d%n", &y, &m, &d, &used) != 3)
    return false;
  return used == 10 &&
         std::chrono::year_month_day(std::chrono::year(y), std::chrono::month(unsigned(m)),
                                     std::chrono::day(unsigned(d)))
             .ok();
}

std::string utc_today() {
  const std::chrono::year_month_day day(
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
  char text[16];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(day.year()),
                static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
  return text;
}

Waiver parse_waiver(const json& j, const std::string& field, const std::string& today) {
  check_members(j, field, {"case", "rule", "owner", "reason", "expires"});
  const Waiver waiver{word(j, field, "case"), word(j, field, "rule"), word(j, field, "owner"),
                      word(j, field, "reason"), word(j, field, "expires")};
  if (verdict_of_rule(waiver.rule) != Verdict::FAIL)
    throw UsageError(field + ".rule", waiver.rule, "only a rule of the gate can be waived");
  if (!is_date(waiver.expires))
    throw UsageError(field + ".expires", waiver.expires, "must be a date, YYYY-MM-DD");
  if (waiver.expires < today) throw UsageError(field + ".expires", waiver.expires, "has expired");
  return waiver;
}

// `base` with what `text` sets; a null `limits` admits any threshold.
Policy parse_onto(Policy base, std::string_view text, const Thresholds* limits,
                  const std::string& today) {
  json j;
  try {
    j = json::parse(text);
  } catch (const json::exception& e) {
    throw UsageError(std::string("policy: ") + e.what());
  }
  check_members(j, "policy", {"target_context", "thresholds", "budgets", "waivers"});

  if (j.contains("target_context")) {
    const json& value = j["target_context"];
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1)
      throw UsageError("policy.target_context", value.dump(), "must be a whole number of tokens");
    base.target_context = value.get<std::int64_t>();
  }

  if (j.contains("thresholds")) {
    std::set<std::string> names;
    for (const auto& info : threshold_infos()) names.emplace(info.name);
    check_members(j["thresholds"], "policy.thresholds", names);
    for (const auto& info : threshold_infos()) {
      const auto it = j["thresholds"].find(info.name);
      if (it == j["thresholds"].end()) continue;
      const std::string field = "policy.thresholds." + std::string(info.name);
      check_members(*it, field, {"value", "reason"});
      word(*it, field, "reason");
      const double value = positive(it->value("value", json()), field + ".value");
      if (limits &&
          (info.tightens_down ? value > limits->*info.member : value < limits->*info.member))
        throw UsageError(field, it->at("value").dump(),
                         "looser than the default; that takes a waiver");
      base.thresholds.*info.member = value;
    }
  }

  if (j.contains("budgets")) {
    if (!j["budgets"].is_array()) throw UsageError("policy.budgets", "", "must be an array");
    std::vector<Budget> budgets;
    for (const json& b : j["budgets"]) {
      const std::string field = "policy.budgets[" + std::to_string(budgets.size()) + "]";
      check_members(b, field, {"plan", "family", "value", "reason"});
      budgets.push_back({word(b, field, "plan"), word(b, field, "family"),
                         positive(b.value("value", json()), field + ".value"),
                         word(b, field, "reason")});
    }
    base.budgets.insert(base.budgets.begin(), budgets.begin(), budgets.end());
  }

  if (j.contains("waivers")) {
    if (!j["waivers"].is_array()) throw UsageError("policy.waivers", "", "must be an array");
    for (const json& w : j["waivers"])
      base.waivers.push_back(
          parse_waiver(w, "policy.waivers[" + std::to_string(base.waivers.size()) + "]", today));
  }
  return base;
}

}  // namespace

const std::vector<ThresholdInfo>& threshold_infos() {
  static const std::vector<ThresholdInfo> infos{
      {"score", &Thresholds::score, true},
      {"score_null", &Thresholds::score_null, true},
      {"token_score", &Thresholds::token_score, true},
      {"token_null", &Thresholds::token_null, true},
      {"excess", &Thresholds::excess, true},
      {"growth", &Thresholds::growth, true},
      {"growth_score", &Thresholds::growth_score, true},
      {"equivalence", &Thresholds::equivalence, true},
      {"equivalence_null", &Thresholds::equivalence_null, true},
      {"error_slope", &Thresholds::error_slope, true},
      {"loose", &Thresholds::loose, false},
  };
  return infos;
}

const Budget& Policy::budget(std::string_view plan, std::string_view family) const {
  for (const Budget& b : budgets)
    if (glob_match(b.plan, plan) && glob_match(b.family, family)) return b;
  throw UsageError("policy.budgets", std::string(plan) + "/" + std::string(family), "no budget");
}

const Policy& default_policy() {
  static const Policy policy = parse_onto({}, embedded::policy_json, nullptr, "");
  return policy;
}

std::string_view threshold_reason(std::string_view name) {
  static const std::map<std::string, std::string, std::less<>> reasons = [] {
    std::map<std::string, std::string, std::less<>> out;
    const json policy = json::parse(embedded::policy_json);
    for (const auto& [key, value] : policy["thresholds"].items()) out[key] = value["reason"];
    return out;
  }();
  const auto it = reasons.find(name);
  return it == reasons.end() ? std::string_view() : std::string_view(it->second);
}

Policy parse_policy(std::string_view text, std::string_view today) {
  return parse_onto(default_policy(), text, &default_policy().thresholds,
                    today.empty() ? utc_today() : std::string(today));
}

}  // namespace numgate
