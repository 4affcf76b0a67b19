#include "kernels/tests/tensor_core_kernels.h"

namespace numgate::kernels::NUMGATE_BACKEND {

__global__ void mma_tiles(int type, const std::uint32_t* a, const std::uint32_t* b,
                          std::uint32_t* d) {
  const unsigned place = 32 * blockIdx.x + threadIdx.x;
  a += 4 * place;
  b += 2 * place;
  d += 4 * place;
  float x[4];
  std::int32_t n[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = __uint_as_float(d[i]);
    n[i] = static_cast<std::int32_t>(d[i]);
  }
  switch (type) {
    case 0:
      simt::mma_m16n8k8_tf32(x, a, b, x);
      break;
    case 1:
      simt::mma_m16n8k16_bf16(x, a, b, x);
      break;
    case 2:
      simt::mma_m16n8k16_fp16(x, a, b, x);
      break;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
    case 3:
      simt::mma_m16n8k32_e4m3(x, a, b, x);
      break;
    case 4:
      simt::mma_m16n8k32_e5m2(x, a, b, x);
      break;
#endif
    case 5:
      simt::mma_m16n8k32_s8(n, a, b, n);
      break;
    case 6:
      simt::mma_m16n8k32_s8_satfinite(n, a, b, n);
      break;
  }
  for (int i = 0; i < 4; ++i)
    d[i] = type < 5 ? __float_as_uint(x[i]) : static_cast<std::uint32_t>(n[i]);
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
