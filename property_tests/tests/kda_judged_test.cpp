// No false alarms: what runs as it is declared breaks no rule but that of accuracy, which inputs
// may.
#include "property_tests/tests/kda_properties.h"

#include "cli/group.h"

namespace numgate {
namespace {

// Equivalence allows a cut no more than fp32 rounding whatever its plan declares (DESIGN 6): a plan
// that narrows what only a cut computes must fail it. `production` is to pass all the same.
bool may_cost_equivalence(const Plan& plan) {
  return plan.name != "production" && plan.formats != plan.schedule_sites_at_ieee().formats;
}

Violation false_alarm(const Case& c) {
  Group group(c, cpu(), {});
  const CellResult cell = judge(group.evidence(c, true), default_policy());
  for (const Reason& r : cell.reasons)
    if (r.rule != "accuracy" && r.rule != "liveness" &&
        !(r.rule == "equivalence" && may_cost_equivalence(c.plan.declared)))
      return r.rule + ": " + r.text;
  return {};
}

// In multiply-adds of the shadow, about.
bool is_small(const Case& c) {
  const Shape& s = c.shape;
  const std::int64_t ranks = c.schedule.kind == ScheduleKind::cp ? c.schedule.parameter : 0;
  return s.T <= 256 && s.HV * s.K * (s.T * s.V + ranks * s.K * s.V) <= 3'000'000;
}

TEST(Judged, DrawnCasesRaiseNoFalseAlarm) { check_cases("judged", 200, is_small, false_alarm); }

TEST(Judged, SavedCasesRaiseNoFalseAlarm) {
  for (const Case& c : saved_counterexamples(kCounterexamples))
    EXPECT_EQ(false_alarm(c), "") << c.id();
}

}  // namespace
}  // namespace numgate
