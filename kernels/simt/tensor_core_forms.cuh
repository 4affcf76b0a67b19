// mma.sync by the type of its operands, for kernels that run all of them.
#pragma once
#include <cstdint>

#include "kernels/simt/mma.h"
#include "kernels/simt/tensor_core.h"

namespace numgate::simt {
inline namespace NUMGATE_BACKEND {

// D = A B + D on the bits of a lane's fragments. False where this image lacks the instruction.
__device__ inline bool mma_sync(tensor_core::Type type, std::uint32_t* d, const std::uint32_t* a,
                                const std::uint32_t* b) {
  using tensor_core::Type;
  float x[4];
  std::int32_t n[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = __uint_as_float(d[i]);
    n[i] = static_cast<std::int32_t>(d[i]);
  }
  switch (type) {
    case Type::tf32:
      mma_m16n8k8_tf32(x, a, b, x);
      break;
    case Type::bf16:
      mma_m16n8k16_bf16(x, a, b, x);
      break;
    case Type::fp16:
      mma_m16n8k16_fp16(x, a, b, x);
      break;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
    case Type::e4m3:
      mma_m16n8k32_e4m3(x, a, b, x);
      break;
    case Type::e5m2:
      mma_m16n8k32_e5m2(x, a, b, x);
      break;
#endif
    case Type::s8:
      mma_m16n8k32_s8(n, a, b, n);
      break;
    case Type::s8_satfinite:
      mma_m16n8k32_s8_satfinite(n, a, b, n);
      break;
    default:
      return false;
  }
  for (int i = 0; i < 4; ++i)
    d[i] = tensor_core::is_integer(type) ? static_cast<std::uint32_t>(n[i]) : __float_as_uint(x[i]);
  return true;
}

}  // namespace NUMGATE_BACKEND
}  // namespace numgate::simt
