// Tiles of bf16 in shared memory and the fragments of mma.h that are read from them.
#pragma once
#include "kernels/kda/tile_dot.cuh"
#include "kernels/simt/async_copy.h"
#include "kernels/simt/load_matrix.h"

namespace numgate::kernels::NUMGATE_BACKEND {

// Place of element (r, c) of a matrix of `columns` columns, a multiple of 64: groups of 8 elements
// change places by row, so that 8 rows of one group lie in different banks.
template <int columns>
__device__ __forceinline__ int swizzled(int r, int c) {
  return r * columns + ((c / 8 ^ (r & 7)) * 8 | c % 8);
}

__device__ __forceinline__ float low_bf16(std::uint32_t pair) {
  return float_from_bf16(static_cast<std::uint16_t>(pair));
}
__device__ __forceinline__ float high_bf16(std::uint32_t pair) {
  return float_from_bf16(static_cast<std::uint16_t>(pair >> 16));
}

// Rows [0, rows) of a matrix in global memory into a tile, by all of the block's threads.
template <int rows, int columns, int threads>
__device__ __forceinline__ void copy_tile_async(simt::Shared<std::uint16_t> to,
                                                const std::uint16_t* from, std::int64_t pitch) {
#pragma unroll
  for (int at = threadIdx.x * 8; at < rows * columns; at += threads * 8) {
    const int r = at / columns, c = at % columns;
    simt::copy16_async(to, swizzled<columns>(r, c), from + r * pitch + c);
  }
}

// A of rows [row, row + 16) and k in [k, k + 16), from a tile [.][columns] of rows by k.
template <int columns>
__device__ __forceinline__ void load_a(std::uint32_t* a, simt::Shared<const std::uint16_t> tile,
                                       int row, int k) {
  const int lane = threadIdx.x % 32;
  simt::load_matrix_x4(a, tile, swizzled<columns>(row + lane % 16, k + lane / 16 * 8));
}
// The same from a tile of k by rows.
template <int columns>
__device__ __forceinline__ void load_a_transposed(std::uint32_t* a,
                                                  simt::Shared<const std::uint16_t> tile, int row,
                                                  int k) {
  const int lane = threadIdx.x % 32;
  simt::load_matrix_x4_transposed(
      a, tile, swizzled<columns>(k + lane % 8 + lane / 16 * 8, row + lane / 8 % 2 * 8));
}
// B of k in [k, k + 16) and columns [column, column + 16), two tiles of 8, from a tile of k by
// columns.
template <int columns>
__device__ __forceinline__ void load_b(std::uint32_t* b, simt::Shared<const std::uint16_t> tile,
                                       int k, int column) {
  const int lane = threadIdx.x % 32;
  simt::load_matrix_x4_transposed(b, tile,
                                  swizzled<columns>(k + lane % 16, column + lane / 16 * 8));
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
