// Warp-wide tensor-core products, D = A B + C, with PTX's fragment layouts. All 32 lanes take part,
// and d may be c. On the CPU the last lane to come computes the tile for all, with the bits of an
// H200.
#pragma once
#include <cstdint>

#include "kernels/simt/simt.h"

#if !defined(__CUDACC__)
#include "kernels/simt/tensor_core.h"
#endif

namespace numgate::simt {
inline namespace NUMGATE_BACKEND {

#if defined(__CUDACC__)

#define NUMGATE_MMA(name, instruction)                                                            \
  __device__ __forceinline__ void name(float* d, const std::uint32_t* a, const std::uint32_t* b,  \
                                       const float* c) {                                          \
    asm("mma.sync.aligned." instruction                                                           \
        " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"                              \
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                          \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), \
          "f"(c[2]), "f"(c[3]));                                                                  \
  }
#define NUMGATE_MMA_S8(name, instruction)                                                         \
  __device__ __forceinline__ void name(std::int32_t* d, const std::uint32_t* a,                   \
                                       const std::uint32_t* b, const std::int32_t* c) {           \
    asm("mma.sync.aligned." instruction                                                           \
        " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"                              \
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                                          \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), \
          "r"(c[2]), "r"(c[3]));                                                                  \
  }

NUMGATE_MMA(mma_m16n8k8_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
NUMGATE_MMA(mma_m16n8k16_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
NUMGATE_MMA(mma_m16n8k16_fp16, "m16n8k16.row.col.f32.f16.f16.f32")
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
NUMGATE_MMA(mma_m16n8k32_e4m3, "m16n8k32.row.col.f32.e4m3.e4m3.f32")
NUMGATE_MMA(mma_m16n8k32_e5m2, "m16n8k32.row.col.f32.e5m2.e5m2.f32")
#endif
NUMGATE_MMA_S8(mma_m16n8k32_s8, "m16n8k32.row.col.s32.s8.s8.s32")
NUMGATE_MMA_S8(mma_m16n8k32_s8_satfinite, "m16n8k32.row.col.satfinite.s32.s8.s8.s32")

#undef NUMGATE_MMA
#undef NUMGATE_MMA_S8

#else

// Register r of A holds row lane / 4 + 8 (r % 2), register r of B column lane / 4; the four lanes
// of a row follow each other along k, and so do the two halves of the registers.
template <tensor_core::Type type, class Accumulator>
void mma(Accumulator* d, const std::uint32_t* a, const std::uint32_t* b, const Accumulator* c) {
  constexpr std::uint32_t kAll = 0xffffffffu;
  tensor_core::Tile& tile = this_thread->warp->tile;
  const unsigned row = this_thread->lane / 4, k = this_thread->lane % 4;
#pragma GCC unroll 4
  for (unsigned r = 0; r < 4; ++r) {
    tile.a[k + r / 2 * 4][row + r % 2 * 8] = a[r];
    tile.c[2 * k + r % 2][row + r / 2 * 8] = std::bit_cast<std::uint32_t>(c[r]);
  }
#pragma GCC unroll 2
  for (unsigned r = 0; r < 2; ++r) tile.b[k + r * 4][row] = b[r];
  if (arrive(kAll, static_cast<Meeting>(static_cast<int>(Meeting::mma) + static_cast<int>(type)))) {
    tensor_core::multiply(type, tensor_core::Unit::mma, tile);
    release(kAll);
  }
#pragma GCC unroll 4
  for (unsigned r = 0; r < 4; ++r) {
    d[r] = std::bit_cast<Accumulator>(tile.d[2 * k + r % 2][row + r / 2 * 8]);
  }
}

#define NUMGATE_MMA(name, type, Accumulator)                                       \
  inline void name(Accumulator* d, const std::uint32_t* a, const std::uint32_t* b, \
                   const Accumulator* c) {                                         \
    mma<tensor_core::Type::type>(d, a, b, c);                                      \
  }

NUMGATE_MMA(mma_m16n8k8_tf32, tf32, float)
NUMGATE_MMA(mma_m16n8k16_bf16, bf16, float)
NUMGATE_MMA(mma_m16n8k16_fp16, fp16, float)
NUMGATE_MMA(mma_m16n8k32_e4m3, e4m3, float)
NUMGATE_MMA(mma_m16n8k32_e5m2, e5m2, float)
NUMGATE_MMA(mma_m16n8k32_s8, s8, std::int32_t)
NUMGATE_MMA(mma_m16n8k32_s8_satfinite, s8_satfinite, std::int32_t)

#undef NUMGATE_MMA

#endif

}  // namespace NUMGATE_BACKEND
}  // namespace numgate::simt
