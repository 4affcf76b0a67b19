// An engine walks the KDA recurrence in double-double over slabs of tokens, all heads at once. The
// engines share the definitions and the certificate; truth_recurrence.h drives any of them.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/case_id.h"
#include "core/tensor.h"
#include "oracles/operand_tile.h"
#include "oracles/scalars/double_double.h"

namespace numgate {

// What is walked. The tensors' names are those of kda.prefill (raw) or of kda.core.
struct RecurrenceStage {
  Shape shape;
  bool raw = false;          // operands come from k, q, g_raw, beta_raw, A_log, dt_bias
  bool query = false;        // o is computed
  bool value = false;        // v is read, else it is zero
  std::int64_t columns = 0;  // of the state, a multiple of kLanes
};

// Inputs that cover some tokens; their first row is token `first` of the stage.
struct InputSlab {
  std::shared_ptr<const TensorMap> tensors;
  std::int64_t first = 0;
};

// The state after a sequence: [HV, K, columns], its radius [HV].
struct FinalState {
  std::vector<double> hi, lo, radius;
};

// One column of one head over a slab.
struct ColumnSample {
  std::vector<DD> o;            // [token]; empty without a query
  std::vector<double> largest;  // [token]: bound on the norm of the head's state so far
  std::vector<DD> state;        // [K]: after the last token
};

// Seconds by what they went into; 0 where an engine does not tell.
struct EngineSeconds {
  double truth = 0;  // any of prepare, walk and bound was running
  double prepare = 0, walk = 0, bound = 0, upload = 0;
};

class RecurrenceEngine {
 public:
  using State0 = std::function<double(std::int64_t head, std::int64_t d, std::int64_t column)>;

  virtual ~RecurrenceEngine() = default;

  // Most tokens a slab may have, a multiple of kTightenTokens, and how many slabs may be between
  // push and pop. A popped slab is looked at before the next push.
  virtual std::int64_t slab_tokens() const = 0;
  virtual int depth() const = 0;

  // Begins a sequence, with nothing in flight. state0 may be null: zero.
  virtual void start(const State0& state0) = 0;
  // Walks the sequence's next tokens. All slabs of a sequence but its last have slab_tokens().
  virtual void push(const InputSlab& inputs, Segment tokens) = 0;
  // Waits for the oldest slab. What follows concerns it alone.
  virtual Segment pop() = 0;

  // o [token, HV, columns] and its radius [token, HV]; lo may be null.
  virtual void outputs(double* hi, double* lo, double* radius) = 0;
  virtual ColumnSample column(std::int64_t head, std::int64_t column) = 0;
  // Of the one token t.
  virtual OperandTile operands(std::int64_t head, std::int64_t t) = 0;
  virtual FinalState state() = 0;

  virtual EngineSeconds seconds() const { return {}; }
};

// threads: 0 for what OpenMP gives.
std::unique_ptr<RecurrenceEngine> make_cpu_engine(const RecurrenceStage& stage, int threads);

// `tokens`: of the longest sequence; workspace is allocated for no more. Raises UsageError where
// this build or this machine has no CUDA, or (K, columns) is not of {64, 128}^2.
std::unique_ptr<RecurrenceEngine> make_cuda_engine(const RecurrenceStage& stage,
                                                   std::int64_t tokens);

}  // namespace numgate
