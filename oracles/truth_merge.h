// Truth of kda.merge: the fold of segment summaries onto a state.
#pragma once
#include "oracles/truth.h"

namespace numgate {

// state [HV, K, V] = M_{T-1} (... (M_0 state0 + B_0) ...) + B_{T-1}, M [T, HV, K, K], B [T, HV, K,
// V], state0 as state or null for zero. `state` is allocated by the caller. Raises UsageError for a
// shape with cuts.
void merge_summaries(const Shape& shape, const Tensor& M, const Tensor& B, const Tensor* state0,
                     const TruthOptions& options, TruthTensor& state, AuditResult& audit);

}  // namespace numgate
