#pragma once
#include <cstdint>

#include "kernels/simt/mma.h"

namespace numgate::kernels::NUMGATE_BACKEND {

// One warp a tile: fragments a[tile][lane][4], b[tile][lane][2] and accumulators d[tile][lane][4],
// in place. `type` counts as tensor_core::Type does.
__global__ void mma_tiles(int type, const std::uint32_t* a, const std::uint32_t* b,
                          std::uint32_t* d);

}  // namespace numgate::kernels::NUMGATE_BACKEND
