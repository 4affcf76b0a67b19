#include "cli/cost.h"

#include <cmath>

#include "cli/group.h"
#include "oracles/truth_recurrence.h"

namespace numgate {
namespace {

// Seconds a million tokens of one head of K = V = 128, the host's work spread over kCores of an
// H200's host, fitted to the records of release and layer.
constexpr int kCores = 16;
constexpr double kInputs = 0.9, kRun = 0.5, kJudge = 0.15, kCell = 0.04;
// MPFR, a column on one thread, and what each further thread of its team is worth.
constexpr double kAudit = 90, kTeam = 0.6;
constexpr double kTruthHost = 25, kShadowHost = 105;
constexpr double kTruthDevice = 3, kHeadsAtOnce = 8;  // a GPU walks eight heads at a time
// All draws in parallel fill the GPU with one head; under cp it walks the maps too, and the host
// folds them: seconds a rank and head.
constexpr double kShadowDevice = 6, kShadowMapped = 11, kShadowRank = 0.007;
constexpr double kTruthRows = 2,
                 kShadowRows = 5;  // of stages whose rows are independent, on the host

// Of a million tokens, beside the truth.
double audit_seconds(bool gpu, std::int64_t heads) {
  TruthOptions options;
  options.device = gpu ? OracleDevice::cuda : OracleDevice::cpu;
  options.threads = kCores;
  return kAudit / (1 + kTeam * (audit_threads(options, audited_columns(options, heads)) - 1));
}

}  // namespace

Timing CostModel::next(const Case& c, bool run_twice) {
  const Shape& s = c.shape;
  const double millions = static_cast<double>(s.T) / 1e6, heads = static_cast<double>(s.HV);
  const double work = millions * heads * static_cast<double>(s.K * s.V) / (128 * 128);
  const double turns = std::ceil(heads / kHeadsAtOnce), audit = audit_seconds(gpu_oracle_, s.HV);
  const bool recurrent = stage(c.stage).inputs.back().name == "state0" || c.stage == "kda.summary";
  Timing t;
  if (group_ != c.group()) {
    group_ = c.group();
    control_.clear();
    shadows_.clear();
    t.inputs = kInputs * work;
    t.truth = !recurrent    ? kTruthRows * work
              : gpu_oracle_ ? audit * millions + kTruthDevice * millions * turns
                            : audit * millions + kTruthHost * work;
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
    const bool mapped = c.schedule.kind == ScheduleKind::cp;
    const double ranks = mapped ? static_cast<double>(c.schedule.parameter) : 0;
    t.shadow += shadow_draws(c, 1) *
                (!recurrent ? kShadowRows * work
                 : gpu_oracle_
                     ? (mapped ? kShadowMapped : kShadowDevice) * work + kShadowRank * ranks * heads
                     : kShadowHost * work);
  };
  shadow(c.plan.declared);
  if (const auto ieee = schedule_shadow_plan(c)) shadow(*ieee);
  return t;
}

}  // namespace numgate
