// Cases that share inputs and truth: what they measure once and use together.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/measure.h"
#include "kernels/backend.h"
#include "oracles/shadow.h"
#include "oracles/truth.h"
#include "partitioning/run.h"
#include "property_tests/families.h"
#include "reports/judge.h"

namespace numgate {

struct GroupOptions {
  std::string oracle = "cpu";  // where truth and shadow are computed: cpu or cuda
  int draws = 8;
  bool keep_low = false;
  std::function<void(const std::string& step, double fraction)> progress = [](const std::string&,
                                                                              double) {};
};

// Draws of the case's shadow. Where one scalar dominates a row (an outlier channel; a token's own
// q . k where all else is forgotten), few do not tell the shadow's spread: it gets twice as many.
int shadow_draws(const Case& c, int draws);
// What tells a group's shadows apart: the schedule's form and the formats of the sites that it has.
std::string shadow_key(const Case& c, const Plan& declared);
// The plan of the second shadow, which equivalence is judged by, where the case needs one.
std::optional<Plan> schedule_shadow_plan(const Case& c);

class Group {
 public:
  Group(const Case& any, kernels::Backend& backend, GroupOptions options);

  // Runs the case's kernels and gathers all that judging it needs. `run_twice` also checks that a
  // second run, on differently poisoned memory and with another order of threads, gives the same
  // bits, and that a NaN in an input shows in a third.
  CellEvidence evidence(const Case& c, bool run_twice);
  // The same for outputs that something else computed.
  CellEvidence evidence(const Case& c, const Observation& seen);

  void set_progress(std::function<void(const std::string&, double)> progress) {
    options_.progress = std::move(progress);
  }
  const TensorMap& inputs();
  const Truth& truth();
  const TruthTensor& truth_of(const std::string& tensor);  // a fold's is that of the state
  const std::map<std::string, TensorShadow>& shadow(const Case& c, const Plan& declared);
  Observation run(const Case& c, const RunOptions& options = {});
  // Seconds since the last call, by part; `judge` stays 0, it is the caller's.
  Timing take_timing() { return std::exchange(timing_, {}); }

 private:
  OracleDevice oracle_device() const;
  const Observation& control(const Case& c);
  TensorProfile profile(const Case& c, const std::string& tensor, const Tensor& seen,
                        const Observation* control);

  Case any_;
  kernels::Backend& backend_;
  GroupOptions options_;
  Timing timing_;
  std::optional<TensorMap> inputs_;
  std::optional<Truth> truth_;
  std::string truth_failure_;
  std::map<std::string, std::map<std::string, TensorShadow>>
      shadows_;                                  // by schedule and declared plan
  std::pair<std::string, Observation> control_;  // of the last plan that ran
};

}  // namespace numgate
