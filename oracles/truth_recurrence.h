// The KDA recurrence streamed over slabs of tokens through an engine: double-double truth, its
// certificate, and its audit on threads beside it.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>

#include "oracles/audit.h"
#include "oracles/truth.h"
#include "oracles/truth_engine.h"

namespace numgate {

struct RecurrenceRun {
  RecurrenceStage stage;
  std::vector<Segment> sequences;  // each starts from state0
  // Inputs that cover the tokens; called once a slab, in order.
  std::function<InputSlab(Segment tokens)> inputs;
  std::function<double(std::int64_t sequence, std::int64_t head, std::int64_t d,
                       std::int64_t column)>
      state0 = {};  // null: zero
  // Called with each slab, in order, and with each sequence's state. Both may be null.
  std::function<void(RecurrenceEngine& popped, Segment tokens)> output = {};
  std::function<void(std::int64_t sequence, const FinalState&)> state = {};
  // Slabs that may wait for the audit, which holds on to their inputs, before the walk waits too.
  std::size_t audit_backlog = 64;
};

// How many columns of the state of `heads` heads are audited, and on how many threads each: the
// cores that are left where a GPU walks the truth; the host's own walk keeps them busy.
std::int64_t audited_columns(const TruthOptions& options, std::int64_t heads);
int audit_threads(const TruthOptions& options, std::int64_t columns);

// Adds to `audit`; `progress` is called with the fraction of tokens walked. options: audit_columns,
// audit_threads, and what these depend on: device, threads.
// Raises OracleError once an audit has failed.
void run_recurrence(RecurrenceEngine& engine, const RecurrenceRun& run, const TruthOptions& options,
                    const std::function<void(double)>& progress, AuditResult& audit);

}  // namespace numgate
