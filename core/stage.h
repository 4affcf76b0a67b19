// The stages, their tensors and the schedules they admit: one registry line each.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace numgate {

// One tensor of a stage. `shape` names the keys of the case's shape, e.g. "T H K".
// `dtype` "in" follows the shape key `in`, "f32" is fixed.
struct TensorSpec {
  std::string_view name, shape, dtype;
};

struct StageInfo {
  std::string_view name, what;
  std::vector<TensorSpec> inputs, outputs;
  std::vector<std::string_view> schedules;  // schedule words, without parameters
};

// Every stage:
//   kda.l2norm    x / sqrt(sum x^2 + 1e-6)                              PIPELINE 2.10
//   kda.gate      bounded or plain log decay                            PIPELINE 2.11, KDA_CP 1
//   kda.beta      sigmoid                                               PIPELINE 2.12
//   kda.conv      causal depthwise convolution of width 4, SiLU, state  PIPELINE 2.9
//   kda.prefill   norm, gate, beta and recurrence, from raw inputs      PIPELINE 2.10 to 2.13
//   kda.core      the recurrence on prepared operands                   PIPELINE 2.13
//   kda.summary   a segment's affine map (M, B)                         PIPELINE 3.1
//   kda.merge     fold of T summaries onto state0                       PIPELINE 3.1
//   kda.out_norm  gated RMSNorm of o                                    PIPELINE 2.14
const std::vector<StageInfo>& stages();

// Raises UsageError for an unknown stage.
const StageInfo& stage(std::string_view name);

}  // namespace numgate
