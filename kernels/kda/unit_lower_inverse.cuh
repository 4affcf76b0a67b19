// T = (I + A)^-1 for a strictly lower triangular A of a chunk, by blocks of 16 x 16, by a whole
// block of threads.
#pragma once
#include "kernels/kda/tile_dot.cuh"

namespace numgate::kernels::NUMGATE_BACKEND {

inline constexpr int kSubChunks = kChunk / kSubChunk;

// Column `thread` of the diagonal blocks of T, by forward substitution; threads 0 to 63. A, T
// [64][kSquare].
__device__ __forceinline__ void invert_diagonal_blocks(simt::Shared<const float> A,
                                                       simt::Shared<float> T, int thread) {
  const int first = thread / kSubChunk * kSubChunk, j = thread % kSubChunk;
  float t[kSubChunk];
#pragma unroll
  for (int i = 0; i < kSubChunk; ++i) {
    float row[kSubChunk];  // up to i
#pragma unroll
    for (int m = 0; m < i; m += 4) {
      const float4 x = simt::load4(A, (first + i) * kSquare + first + m);
      row[m] = x.x, row[m + 1] = x.y, row[m + 2] = x.z, row[m + 3] = x.w;
    }
    float sum = i == j ? -1.0f : 0.0f;
#pragma unroll
    for (int m = 0; m < i; ++m) sum = fmaf(row[m], t[m], sum);
    t[i] = -sum;
    T[(first + i) * kSquare + first + j] = t[i];
  }
}

// acc += a b over k in [0, count), one fma chain in ascending k as in dot_tile: a of rows row and
// row + 8 of a tile at a[first_a], b two columns from b[first_b]; pitches kSquare.
__device__ __forceinline__ void add_product(float (&acc)[4], simt::Shared<const float> a,
                                            int first_a, simt::Shared<const float> b, int first_b,
                                            int count) {
#pragma unroll 4
  for (int k = 0; k < count; k += 4) {
    const float4 low = simt::load4(a, first_a + k),
                 high = simt::load4(a, first_a + 8 * kSquare + k);
    const float x[4] = {low.x, low.y, low.z, low.w}, y[4] = {high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 z = simt::load2(b, first_b + (k + i) * kSquare);
      acc[0] = fmaf(x[i], z.x, acc[0]), acc[1] = fmaf(x[i], z.y, acc[1]);
      acc[2] = fmaf(y[i], z.x, acc[2]), acc[3] = fmaf(y[i], z.y, acc[3]);
    }
  }
}

// The blocks below, T_IJ = -T_II (sum_M A_IM T_MJ), a diagonal of blocks at a time; all threads.
// The inner sum waits in A's unused upper block (J, I). Ends with a barrier.
template <int warps>
__device__ __forceinline__ void invert_lower_blocks(Format f, simt::Shared<float> A,
                                                    simt::Shared<float> T) {
  const Lane l;
  for (int distance = 1; distance < kSubChunks; ++distance) {
    for (int job = threadIdx.x / 32; job < 2 * (kSubChunks - distance); job += warps) {
      const int J = job / 2 * kSubChunk, I = J + distance * kSubChunk, column = job % 2 * 8;
      const int pair = column + 2 * l.pair;
      float acc[4] = {};
      if (f == Format::ieee)
        add_product(acc, A, (I + l.row) * kSquare + J, T, J * kSquare + J + pair, I - J);
      else
        dot_tile(
            f, acc, [&](int r, int k) { return A[(I + r) * kSquare + k]; },
            [&](int k, int c) { return T[k * kSquare + J + column + c]; }, J, I);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        A[(J + l.row + e / 2 * 8) * kSquare + I + column + 2 * l.pair + e % 2] = acc[e];
      __syncwarp();
      float product[4] = {};
      if (f == Format::ieee)
        add_product(product, T, (I + l.row) * kSquare + I, A, J * kSquare + I + pair, kSubChunk);
      else
        dot_tile(
            f, product, [&](int r, int k) { return T[(I + r) * kSquare + I + k]; },
            [&](int k, int c) { return A[(J + k) * kSquare + I + column + c]; }, 0, kSubChunk);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        T[(I + l.row + e / 2 * 8) * kSquare + J + column + 2 * l.pair + e % 2] = -product[e];
    }
    __syncthreads();
  }
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
