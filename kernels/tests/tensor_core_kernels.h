#pragma once
#include <cstdint>

#include "kernels/simt/simt.h"
#include "kernels/simt/tensor_core.h"

namespace numgate::kernels::NUMGATE_BACKEND {

// One warp a tile: fragments a[tile][lane][4], b[tile][lane][2] and accumulators d[tile][lane][4],
// in place.
__global__ void mma_tiles(tensor_core::Type type, const std::uint32_t* a, const std::uint32_t* b,
                          std::uint32_t* d);

}  // namespace numgate::kernels::NUMGATE_BACKEND
