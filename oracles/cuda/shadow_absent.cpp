// In place of shadow_device.cu in a build without CUDA.
#include "core/errors.h"
#include "oracles/cuda/shadow_device.h"

namespace numgate::team {

std::unique_ptr<TeamDevice> cuda_shadow_device() {
  throw UsageError("device", "cuda", "is not part of this build");
}

}  // namespace numgate::team
