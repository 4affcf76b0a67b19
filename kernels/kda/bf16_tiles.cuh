// Tiles of bf16 in shared memory and the fragments of mma.h that are read from them.
#pragma once
#include "kernels/kda/tile_dot.cuh"
#include "kernels/simt/load_matrix.h"

namespace numgate::kernels::NUMGATE_BACKEND {

// Place of element (r, c) of a matrix of `columns` columns, a multiple of 64: groups of 8 elements
// change places by row, so that 8 rows of one group lie in different banks.
template <int columns>
__device__ __forceinline__ unsigned swizzled(unsigned r, unsigned c) {
  return r * columns + ((c / 8 ^ r % 8) * 8 | c % 8);
}

__device__ __forceinline__ float low_bf16(std::uint32_t pair) {
  return float_from_bf16(static_cast<std::uint16_t>(pair));
}
__device__ __forceinline__ float high_bf16(std::uint32_t pair) {
  return float_from_bf16(static_cast<std::uint16_t>(pair >> 16));
}

// Fragments read by load_matrix: where this lane's row of them starts. Steps along the tile that
// keep a row's place in a group of 8 rows are sums; steps of whole 16-column groups inside the tile
// are an exclusive or, since that is what the swizzle is.
//
// A of rows [row, row + 16) from a tile of rows by k: load_matrix_x4 at a_at ^ k, k a multiple
// of 16.
template <int columns>
__device__ __forceinline__ unsigned a_at(unsigned row) {
  const unsigned lane = threadIdx.x % 32;
  return swizzled<columns>(row + lane % 16, lane / 16 * 8);
}
// The same from a tile of k by rows: load_matrix_x4_transposed at a_transposed_at + k columns.
template <int columns>
__device__ __forceinline__ unsigned a_transposed_at(unsigned row) {
  const unsigned lane = threadIdx.x % 32;
  return swizzled<columns>(lane % 8 + lane / 16 * 8, row + lane / 8 % 2 * 8);
}
// B of 16 columns, two tiles of 8, from a tile of columns by k: load_matrix_x4 at
// (b_transposed_at + column columns) ^ k, both multiples of 16.
template <int columns>
__device__ __forceinline__ unsigned b_transposed_at() {
  return a_transposed_at<columns>(0);
}
// The same from a tile of k by columns: load_matrix_x4_transposed at (b_at + k columns) ^ column.
template <int columns>
__device__ __forceinline__ unsigned b_at() {
  const unsigned lane = threadIdx.x % 32;
  return swizzled<columns>(lane % 16, lane / 16 * 8);
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
