// Where nvcc was not found.
#include "core/errors.h"
#include "oracles/truth_engine.h"

namespace numgate {

std::unique_ptr<RecurrenceEngine> make_cuda_engine(const RecurrenceStage&, std::int64_t) {
  throw UsageError("device", "cuda", "this build has no CUDA; nvcc was not found");
}

}  // namespace numgate
