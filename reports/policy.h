// The release policy: thresholds, accuracy budgets, waivers. `reports/policy.json` is its one
// definition, compiled in.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numgate {

// DESIGN 6, in the order of its rules. Each limit is exceeded only by a larger value.
struct Thresholds {
  double score = 0, score_null = 0;        // W, and its multiple of the null's 99.9th percentile
  double token_score = 0, token_null = 0;  // X, likewise
  double excess = 0;
  double growth = 0, growth_score = 0;  // lower bound of G; W projected to the target context
  double equivalence = 0, equivalence_null = 0;  // W_R, and its multiple of the null
  double error_slope = 0;  // slope of the error below which it is not projected
  double loose = 0;        // largest W below which the shadow vouches for nothing
};

struct ThresholdInfo {
  std::string_view name;
  double Thresholds::*member;
  bool tightens_down;  // whether a smaller value is the stricter one
};
const std::vector<ThresholdInfo>& threshold_infos();

// Largest relative error of output or state, measured or projected. The first that matches counts.
struct Budget {
  std::string plan, family;  // globs
  double value = 0;
  std::string reason;
};

struct Waiver {
  std::string case_glob, rule, owner, reason;
  std::string expires;  // YYYY-MM-DD, the last day on which it holds
};

struct Policy {
  Thresholds thresholds;
  std::int64_t target_context = 0;
  std::vector<Budget> budgets;
  std::vector<Waiver> waivers;

  const Budget& budget(std::string_view plan, std::string_view family) const;
};

// The compiled-in policy.
const Policy& default_policy();
// Why each threshold has its value, from policy.json.
std::string_view threshold_reason(std::string_view name);

// What `text` (the form of policy.json, members optional) changes of the compiled-in policy; its
// budgets come before the compiled-in ones. Raises UsageError naming field and value: malformed or
// unknown members, a threshold looser than the compiled-in one (that is a waiver's task), a waiver
// that lacks owner, reason or date or has expired on `today` (YYYY-MM-DD; empty: the system's date,
// UTC).
Policy parse_policy(std::string_view text, std::string_view today = {});

}  // namespace numgate
