// The KDA recurrence streamed over tokens: double-double truth, its certificate and its audit in
// one walk.
#pragma once
#include <cstdint>
#include <functional>

#include "oracles/audit.h"
#include "oracles/truth.h"
#include "oracles/truth_operands.h"

namespace numgate {

struct RecurrenceRun {
  OperandSource source;
  std::vector<Segment> sequences;  // each starts from state0
  std::int64_t columns = 0;        // of the state, a multiple of kLanes
  const Tensor* v = nullptr;       // [T, HV, columns]; null: zero
  std::function<double(std::int64_t sequence, std::int64_t head, std::int64_t d,
                       std::int64_t column)>
      state0 = {};
  TruthTensor* o = nullptr;      // [T, HV, columns]; null: not computed
  TruthTensor* state = nullptr;  // [sequences, HV, K, columns]
};

// Fills o and state, allocated by the caller (lo where it is to be kept), and adds to `audit`.
// `progress` is called with the fraction done. Raises OracleError as soon as a tile's audit fails.
void run_recurrence(const RecurrenceRun& run, const TruthOptions& options,
                    const std::function<void(double)>& progress, AuditResult& audit);

}  // namespace numgate
