#include "kernels/tests/tensor_core_kernels.h"

#include "kernels/simt/tensor_core_forms.cuh"

namespace numgate::kernels::NUMGATE_BACKEND {

__global__ void mma_tiles(tensor_core::Type type, const std::uint32_t* a, const std::uint32_t* b,
                          std::uint32_t* d) {
  const unsigned place = 32 * blockIdx.x + threadIdx.x;
  simt::mma_sync(type, d + 4 * place, a + 4 * place, b + 2 * place);
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
