#include "cli/cost.h"

#include <cmath>

#include "cli/group.h"

namespace numgate {
namespace {

// Seconds a million tokens of one head of K = V = 128, the host's spread over 16 cores. The release
// record took 1.2 times what they give.
constexpr double kInputs = 0.5, kRun = 2, kJudge = 1.5, kCell = 0.05;
constexpr double kAudit = 26;  // MPFR, a column a core, whatever the heads
constexpr double kTruthHost = 25, kShadowHost = 105;
// A GPU walks eight heads at a time, all draws in parallel.
constexpr double kTruthDevice = 3, kShadowDevice = 15, kHeadsAtOnce = 8;
constexpr double kTruthRows = 2,
                 kShadowRows = 5;  // of stages whose rows are independent, on the host

}  // namespace

Timing CostModel::next(const Case& c, bool run_twice) {
  const Shape& s = c.shape;
  const double millions = static_cast<double>(s.T) / 1e6, heads = static_cast<double>(s.HV);
  const double work = millions * heads * static_cast<double>(s.K * s.V) / (128 * 128);
  const double turns = std::ceil(heads / kHeadsAtOnce);
  const bool recurrent = stage(c.stage).inputs.back().name == "state0" || c.stage == "kda.summary";
  Timing t;
  if (group_ != c.group()) {
    group_ = c.group();
    control_.clear();
    shadows_.clear();
    t.inputs = kInputs * work;
    t.truth = !recurrent    ? kTruthRows * work
              : gpu_oracle_ ? kAudit * millions + kTruthDevice * millions * turns
                            : kAudit * millions + kTruthHost * work;
  }
  double runs = run_twice ? 3 : 1;
  if (c.schedule.kind != ScheduleKind::sequential && control_ != c.plan.ran.name) {
    control_ = c.plan.ran.name;
    ++runs;
  }
  t.kernels = kRun * work * runs;
  t.judge = kCell + kJudge * work;
  const auto shadow = [&](const Plan& declared) {
    if (!shadows_.insert(shadow_key(c, declared)).second) return;
    const int draws = shadow_draws(c, 1);
    t.shadow += draws * (!recurrent    ? kShadowRows * work
                         : gpu_oracle_ ? kShadowDevice * millions * turns
                                       : kShadowHost * work);
  };
  shadow(c.plan.declared);
  if (const auto ieee = schedule_shadow_plan(c)) shadow(*ieee);
  return t;
}

}  // namespace numgate
