// What is the right value? The definition of a stage read in double-double, with a radius, audited
// in MPFR.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/case_id.h"
#include "core/tensor.h"
#include "oracles/device.h"

namespace numgate {

// One output of a stage (names and shapes of core/stage.h; a leading N is dropped where it is 1).
// Value of element i: hi[i] + lo[i], within radius[i / shape.back()] of the exact value for the
// given inputs; the radius counts from hi + lo, so where lo was dropped half an ulp of hi comes on
// top.
struct TruthTensor {
  std::vector<std::int64_t> shape;
  LargeVector<double> hi;      // row-major
  LargeVector<double> lo;      // empty unless TruthOptions::keep_low
  std::vector<double> radius;  // absolute, one per row; a row is all of the last index
};

struct AuditResult {
  std::int64_t columns = 0;  // columns walked over the whole length in MPFR
  std::int64_t prepared =
      0;  // operands (khat, qhat, alpha, beta) recomputed in MPFR from the raw inputs
  // log2 of the largest |double-double - MPFR| over the largest norm so far (of the state; of the
  // operand itself where an operand is audited); -infinity where all agree exactly.
  double worst_log2 = -std::numeric_limits<double>::infinity();
  std::string worst_where;
  double seconds = 0;  // of the column that took longest
  int threads = 0;     // that walked a column
};

struct TruthOptions {
  // Who reads the recurrence; scalar stages and kda.merge are read on the CPU.
  OracleDevice device = OracleDevice::cpu;
  bool keep_low = false;
  int audit_columns =
      1;  // state columns a value head, spread over the heads; at most kMaxAuditColumns in all
  int threads = 0;  // 0: what OpenMP gives
  int audit_threads =
      0;  // a column: 1, 2, 4 or 8; 0: as many as fit beside a GPU's walk, 1 beside the host's own
  std::function<void(double fraction)>
      progress;  // called from one thread at a time, fraction in (0, 1]
};
inline constexpr int kMaxAuditColumns = 4;

struct Truth {
  std::map<std::string, TruthTensor> outputs;
  AuditResult audit;
  double seconds = 0;
};

// Truth of the case's stage. Of the case only stage and shape count: schedule, plan and family do
// not change what is right. Inputs by the names and shapes of core/stage.h; `state0` and
// `conv_state0` may be left out where they are zero. Cuts reset the recurrence and the convolution
// at every packed sequence. Memory: the outputs plus a few MiB a head, whatever T; on cuda at most
// 4 GiB of the device and 0.6 GiB of the host besides. Raises UsageError: unknown stage, an input
// missing or of another shape, no CUDA where it is asked for, other audit_threads. OracleError: the
// audit disagrees by more than 2^-80 of the largest norm so far (plus 2^-960), see oracles/audit.h;
// CUDA fails.
Truth compute_truth(const Case& c, const TensorMap& inputs, const TruthOptions& options = {});

}  // namespace numgate
