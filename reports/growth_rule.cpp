#include "reports/growth_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/text.h"

namespace numgate {
namespace {

// Schedule-only sites that this case has; a diagonal chain forms no Kg^T W.
bool has_site(const Case& c, Site s) {
  switch (c.schedule.kind) {
    case ScheduleKind::cp:
      return (s == Site::summary_kw && c.plan.ran[Site::summary_chain] != Format::diag_tf32x3) ||
             s == Site::summary_chain || s == Site::merge_dot || s == Site::handoff;
    case ScheduleKind::replay:
      return s == Site::replay_dot || s == Site::ring;
    case ScheduleKind::chunked:
    case ScheduleKind::resume:
      return s == Site::handoff;
    default:
      return false;
  }
}

}  // namespace

std::vector<std::string> suspects(const Case& c, std::string_view rule) {
  std::vector<std::string> sites;
  for (const Site s : c.plan.misdeclared()) sites.emplace_back(name(s));
  if (sites.empty() && rule == "equivalence")
    for (const SiteInfo& s : kSites)
      if (s.schedule_only && has_site(c, s.site) && c.plan.ran[s.site] != Format::ieee)
        sites.emplace_back(s.name);
  return sites;
}

double project(double at_end, const Slope& slope, double exponent, const Policy& policy) {
  const double factor = static_cast<double>(policy.target_context) / static_cast<double>(slope.end);
  return at_end * std::pow(std::max(factor, 1.0), exponent);
}

bool grows_beyond(const Slope& slope, double w, const Policy& policy) {
  return slope.low > policy.thresholds.growth &&
         project(w, slope, slope.value, policy) > policy.thresholds.growth_score;
}

Reason growth_reason(const Case& c, const std::string& tensor, std::string_view along,
                     const Slope& slope, double w, const Policy& policy) {
  Reason reason;
  reason.rule = "growth";
  reason.sites = suspects(c, reason.rule);
  reason.measured = slope.low;
  reason.limit = policy.thresholds.growth;
  reason.tensor = tensor;
  reason.text = fmt::format(
      "score of {} grows with {} as t^{:.2f} (99 % interval {:.2f} to {:.2f}): {} at {}, {} "
      "projected to {} tokens",
      tensor, along, slope.value, slope.low, slope.high, number_text(w), count_text(slope.end),
      number_text(project(w, slope, slope.value, policy)), count_text(policy.target_context));
  return reason;
}

}  // namespace numgate
