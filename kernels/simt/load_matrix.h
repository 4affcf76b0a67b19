// Four 8 x 8 matrices of 16-bit elements from shared memory, as fragments of mma.h (ldmatrix). Lane
// l names row l % 8 of matrix l / 8: 8 elements, 16-byte aligned, from `index` on. Register m of
// lane l then holds elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of matrix m, or, transposed,
// of column l / 4. All 32 lanes take part.
// transpose_matrix: such a register of one matrix becomes that of its transpose (movmatrix).
#pragma once
#include "kernels/simt/simt.h"

namespace numgate::simt {
inline namespace NUMGATE_BACKEND {

#if defined(__CUDACC__)

#define NUMGATE_LDMATRIX(name, modifier)                                                     \
  __device__ __forceinline__ void name(std::uint32_t* r, const std::uint16_t* from,          \
                                       std::size_t index) {                                  \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" modifier ".shared.b16 {%0,%1,%2,%3}, [%4];" \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                            \
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(from + index)))   \
                 : "memory");                                                                \
  }
NUMGATE_LDMATRIX(load_matrix_x4, "")
NUMGATE_LDMATRIX(load_matrix_x4_transposed, ".trans")
#undef NUMGATE_LDMATRIX
__device__ __forceinline__ std::uint32_t transpose_matrix(std::uint32_t r) {
  std::uint32_t t;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(r));
  return t;
}

#else

template <bool transposed>
void load_matrices(std::uint32_t* r, Shared<const std::uint16_t> from, std::size_t index) {
  constexpr std::uint32_t kAll = 0xffffffffu;
  Warp& warp = *this_thread->warp;
  const unsigned lane = this_thread->lane;
  warp.row[lane] = from.group(index, 8, 16);
  if (arrive(kAll, Meeting::load_matrix)) {
    for (unsigned l = 0; l < Warp::kLanes; ++l) std::memcpy(warp.matrix[l], warp.row[l], 16);
    release(kAll);
  }
  for (unsigned m = 0; m < 4; ++m) {
    const auto element = [&](unsigned i) -> std::uint32_t {
      const unsigned pair = 2 * (lane % 4) + i, other = lane / 4;
      return transposed ? warp.matrix[8 * m + pair][other] : warp.matrix[8 * m + other][pair];
    };
    r[m] = element(0) | element(1) << 16;
  }
}
inline void load_matrix_x4(std::uint32_t* r, Shared<const std::uint16_t> from, std::size_t index) {
  load_matrices<false>(r, from, index);
}
inline void load_matrix_x4_transposed(std::uint32_t* r, Shared<const std::uint16_t> from,
                                      std::size_t index) {
  load_matrices<true>(r, from, index);
}
inline std::uint32_t transpose_matrix(std::uint32_t r) {
  const unsigned lane = this_thread->lane, column = lane / 4;
  const auto element = [&](unsigned row) {
    const auto pair = __shfl_sync(0xffffffffu, r, static_cast<int>(row * 4 + column / 2));
    return pair >> column % 2 * 16 & 0xffff;
  };
  const std::uint32_t low = element(2 * (lane % 4)), high = element(2 * (lane % 4) + 1);
  return low | high << 16;
}

#endif

}  // namespace NUMGATE_BACKEND
}  // namespace numgate::simt
