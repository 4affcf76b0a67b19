#include "cli/group.h"

#include <chrono>
#include <cmath>

#include "core/errors.h"
#include "property_tests/planted_nan.h"

namespace numgate {
namespace {

constexpr double kLargestRadius = 0x1p-20;  // of the shadow; DESIGN 7

// Adds the time of its scope to one part.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// A NaN in the inputs themselves while this lives: a copy of them may not fit.
struct NanInInputs {
  NanInInputs(const Case& c, TensorMap& all) : inputs(all), planted(plant_nan(c, all)) {}
  ~NanInInputs() { remove_nan(planted, inputs); }
  NanInInputs(const NanInInputs&) = delete;
  NanInInputs& operator=(const NanInInputs&) = delete;

  TensorMap& inputs;
  const PlantedNan planted;
};

void add_differences(Observation& seen, const Observation& again) {
  for (const auto& [tensor, values] : seen.outputs)
    if (const auto n = differing_elements(values, again.outputs.at(tensor)); n > 0)
      seen.failures.push_back("two runs differ in " + std::to_string(n) + " elements of " + tensor);
}

// Outputs that are copied rather than computed: judged by their bits.
bool is_copy(const std::string& tensor) { return tensor == "conv_state"; }

}  // namespace

std::string shadow_key(const Case& c, const Plan& declared) {
  // A recurrence that is not cut has none of the sites that a cut adds.
  const bool whole = c.schedule.kind == ScheduleKind::sequential &&
                     (c.stage == "kda.prefill" || c.stage == "kda.core");
  std::string key = c.schedule.text() + "/";
  for (Format f : (whole ? declared.schedule_sites_at_ieee() : declared).formats)
    key += static_cast<char>('a' + static_cast<int>(f));
  return key;
}

std::optional<Plan> schedule_shadow_plan(const Case& c) {
  const Plan ieee = c.plan.declared.schedule_sites_at_ieee();
  if (ieee.formats == c.plan.declared.formats || equivalence(c.schedule) != Equivalence::R)
    return std::nullopt;
  return ieee;
}

Group::Group(const Case& any, kernels::Backend& backend, GroupOptions options)
    : any_(any), backend_(backend), options_(std::move(options)) {}

const TensorMap& Group::inputs() {
  if (!inputs_) {
    options_.progress("inputs", 0);
    const Stopwatch watch(timing_.inputs);
    inputs_ = generate(any_);
  }
  return *inputs_;
}

int shadow_draws(const Case& c, int draws) {
  const bool dominated =
      c.family == "outlier_channels" || c.family == "strong_decay" || c.family == "log_sigmoid";
  return dominated ? 2 * draws : draws;
}

OracleDevice Group::oracle_device() const {
  return options_.oracle == "cuda" ? OracleDevice::cuda : OracleDevice::cpu;
}

const Truth& Group::truth() {
  if (!truth_failure_.empty()) throw OracleError(truth_failure_);
  if (!truth_) {
    TruthOptions o;
    o.keep_low = options_.keep_low;
    o.device = oracle_device();
    o.progress = [&](double f) { options_.progress("truth", f); };
    const TensorMap& in = inputs();
    const Stopwatch watch(timing_.truth);
    try {
      truth_ = compute_truth(any_, in, o);
    } catch (const OracleError& e) {
      truth_failure_ = e.what();
      throw;
    }
  }
  return *truth_;
}

const TruthTensor& Group::truth_of(const std::string& tensor) {
  return truth().outputs.at(tensor == "fold" ? "state" : tensor);
}

const std::map<std::string, TensorShadow>& Group::shadow(const Case& c, const Plan& declared) {
  const std::string key = shadow_key(c, declared);
  const auto found = shadows_.find(key);
  if (found != shadows_.end()) return found->second;
  ShadowOptions o;
  o.draws = shadow_draws(c, options_.draws);
  o.device = oracle_device();
  o.progress = [&](double f) { options_.progress("shadow of " + declared.name, f); };
  const TensorMap& in = inputs();
  const Truth& t = truth();
  const Stopwatch watch(timing_.shadow);
  return shadows_.emplace(key, compute_shadow(c, declared, in, t, o)).first->second;
}

Observation Group::run(const Case& c, const RunOptions& options) {
  const TensorMap& in = inputs();
  options_.progress("kernels", 0);
  const Stopwatch watch(timing_.kernels);
  return run_case(c, in, backend_, options);
}

const Observation& Group::control(const Case& c) {
  Case sequential = c;
  sequential.schedule = {};
  const std::string key = sequential.plan.ran.name;
  if (control_.first != key) control_ = {key, run(sequential)};
  return control_.second;
}

TensorProfile Group::profile(const Case& c, const std::string& tensor, const Tensor& seen,
                             const Observation* control) {
  const TruthTensor& t = truth_of(tensor);
  const OutputLayout layout = output_layout(c, tensor, t.shape);
  TensorProfile p;
  p.tensor = tensor;
  p.is_state = layout.is_state;
  p.heads = layout.heads;
  p.keys = layout.keys;
  p.truth_squares = truth_squares(layout, t);
  p.kernel = measure(layout, seen, t);
  p.shadow = shadow(c, c.plan.declared).at(tensor);
  if (seen.dtype == Dtype::bf16 && !layout.is_state)
    p.kernel.row_excess = measure_excess(layout, seen, t, p.shadow);
  const double radius = radius_over_shadow(layout, t, p.shadow);
  if (!(radius < kLargestRadius))
    throw OracleError("the truth's radius of " + tensor + " is " + std::to_string(radius) +
                      " of the shadow");
  if (control == nullptr || !control->outputs.contains(tensor)) return p;
  const Tensor& other = control->outputs.at(tensor);
  if (seen.dtype != other.dtype) return p;  // what a cast hides cannot be held against the control
  p.has_control = true;
  p.differing_bits = differing_elements(seen, other);
  p.control = measure(layout, other, t);
  if (const auto ieee = schedule_shadow_plan(c)) p.schedule_shadow = shadow(c, *ieee).at(tensor);
  return p;
}

CellEvidence Group::evidence(const Case& c, const Observation& seen) {
  CellEvidence e;
  e.c = c;
  e.health.failures = seen.failures;
  const Liveness live = liveness(c, inputs());
  e.live = live.live;
  e.not_live_reason = live.reason;
  try {
    const bool own_control = c.schedule.kind == ScheduleKind::sequential;
    const Observation* against = own_control ? nullptr : &control(c);
    for (const auto& spec : stage(c.stage).outputs)
      if (!seen.outputs.contains(std::string(spec.name)))
        e.health.failures.push_back("no output " + std::string(spec.name));
    for (const auto& [tensor, values] : seen.outputs) {
      if (is_copy(tensor)) {
        const TruthTensor& t = truth().outputs.at(tensor);
        for (std::int64_t i = 0; i < values.size(); ++i)
          if (values.at(i) != t.hi[static_cast<std::size_t>(i)]) {
            e.health.failures.push_back(tensor + " is not the last raw inputs (element " +
                                        std::to_string(i) + ")");
            break;
          }
      } else {
        e.tensors.push_back(profile(c, tensor, values, against));
      }
    }
  } catch (const OracleError& error) {
    e.oracle_valid = false;
    e.oracle_failure = error.what();
  }
  return e;
}

CellEvidence Group::evidence(const Case& c, bool run_twice) {
  Observation seen;
  try {
    seen = run(c);
    if (run_twice) {
      RunOptions other;
      other.poison = kOtherPoison;
      other.schedule_seed = 2;
      add_differences(seen, run(c, other));
      const NanInInputs broken(c, *inputs_);
      const std::string hidden = swallowed_nan(c, broken.planted, run(c).outputs);
      if (!hidden.empty()) seen.failures.push_back(hidden);
    }
  } catch (const KernelError& error) {
    CellEvidence e;
    e.c = c;
    e.health.ran = false;
    e.health.failures.push_back(error.what());
    return e;
  }
  return evidence(c, seen);
}

}  // namespace numgate
