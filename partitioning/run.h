// Runs a case's kernels under its schedule.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/case_id.h"
#include "core/tensor.h"
#include "kernels/backend.h"
#include "partitioning/device_buffer.h"

namespace numgate {

struct RunOptions {
  int poison = kPoison;             // what fresh buffers hold
  std::uint64_t schedule_seed = 1;  // order of the CPU backend's fibers
  // Groups of heads that run one after the other, at least; more where memory is short
  // (device_memory.h). It changes no bit.
  std::int64_t head_groups = 1;
};

// What a run left behind: outputs by the names of core/stage.h (`o` before the cast), under cp also
// `fold`, the fold of all ranks' summaries; and whatever was unhealthy, one sentence each.
struct Observation {
  TensorMap outputs;
  std::vector<std::string> failures;
};

// Runs c.plan.ran. Inputs by the names and shapes of core/stage.h. Raises UsageError for a stage,
// schedule and plan that the backend cannot run or that does not fit into its memory, KernelError
// naming the case from kernels and from the device.
Observation run_case(const Case& c, const TensorMap& inputs, kernels::Backend& backend,
                     const RunOptions& options = {});

}  // namespace numgate
