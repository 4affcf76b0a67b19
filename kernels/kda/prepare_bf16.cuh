// Shared memory and steps of prepare_bf16.cu. The operands of mma.sync lie in shared memory as its
// fragments are read, with k permuted inside each step of 16 (lane p of a row holds channels 4p to
// 4p + 3), which changes no bit.
#pragma once
#include "kernels/kda/bf16_tiles.cuh"
#include "kernels/kda/chunk_decay.cuh"
#include "kernels/kda/rows.cuh"
#include "kernels/kda/unit_lower_inverse.cuh"

namespace numgate::kernels::NUMGATE_BACKEND::prepare_bf16 {

inline constexpr int kThreads = 256, kWarps = kThreads / 32, kMatrix = kChunk * kSquare;
inline constexpr int kShares = kWarps / kSubChunks;  // warps that share a sub-chunk, by channels

// Decays of a channel across the sub-chunks [first, last): row `across` of a table [kIntervals][K],
// whose first row is 1.
__host__ __device__ constexpr unsigned across(unsigned first, unsigned last) {
  return first == last ? 0 : last * (last - 1) / 2 + first + 1;
}
inline constexpr unsigned kIntervals = across(kSubChunks - 1, kSubChunks) + 1;
// Left blocks scaled by what lies between: 0 of sub-chunk 2, 1 and 2 of sub-chunk 3.
inline constexpr int kScaled = 3;

// Rows that a later sub-chunk's left rows meet.
inline constexpr int kRightRows = kChunk - kSubChunk;

// Block (I, J) with place `index` among those on and below the diagonal.
inline constexpr int kLowerBlocks = kSubChunks * (kSubChunks + 1) / 2;
struct LowerBlock {
  unsigned I, J;
  __device__ explicit LowerBlock(unsigned index)
      : I((index >= 1) + (index >= 3) + (index >= 6)), J(index - I * (I + 1) / 2) {}
};

inline constexpr int kPartsPitch = 36;  // of the sums of squares: 32 parts a row

// Shared memory, in bytes. A left operand takes the place of 4-byte log decays: A of mma.sync of
// one row pair, of k in the first row's place and of q in the second's.
template <int K, int V>
struct Layout {
  static constexpr int log_decay = 0;                          // [64][K], left [64][K], v [64][V]
  static constexpr int bk = log_decay + 4 * kChunk * K;        // [64][K] bf16
  static constexpr int right = bk + 2 * kChunk * K;            // [kRightRows][K] bf16
  static constexpr int diagonal = right + 2 * kRightRows * K;  // [64][K] bf16
  static constexpr int scaled = diagonal + 2 * kChunk * K;     // left [kScaled][16][K]
  static constexpr int parts = right;                   // [2][64][kPartsPitch], squares of k, q
  static constexpr int A = right, T = A + 4 * kMatrix;  // [64][kSquare] each, in the end
  static constexpr int inverse = A;                     // T in bf16 [64][64]
  static constexpr int after_scaled = scaled + 4 * kScaled * kSubChunk * K,
                       after_T = T + 4 * kMatrix;
  static constexpr int total = after_scaled > after_T ? after_scaled : after_T;  // [4][K]
  static constexpr int cross = total + 4 * kSubChunks * K;                       // [kIntervals][K]
  static constexpr int beta = cross + 4 * kIntervals * K;                        // [64]
  static constexpr int norms = beta + 4 * kChunk;  // [2][64]: inverse norms of k, of q
  static constexpr int bytes = norms + 8 * kChunk;
  static_assert(8 * kChunk * kPartsPitch <= total - right && V <= 2 * K);
};

// Place of channels 16 step + 4 pair to 4 pair + 3 of row r: of log decays and left operands, read
// 16 bytes of two rows at once,
template <int K>
__device__ __forceinline__ unsigned left_at(unsigned r, unsigned step, unsigned pair) {
  return r * K + 4 * pair + (step % 2 ^ r % 2) * 16 + step / 2 * 32;
}
// and of right operands, read 8 bytes of four rows at once.
template <int K>
__device__ __forceinline__ unsigned right_at(unsigned r, unsigned step, unsigned pair) {
  return r * K + 4 * pair + (step % 4 ^ r % 4) * 16 + step / 4 * 64;
}

struct Four {
  float x[4];
};
__device__ __forceinline__ Four four_of(uint2 bf16) {
  return {{low_bf16(bf16.x), high_bf16(bf16.x), low_bf16(bf16.y), high_bf16(bf16.y)}};
}
__device__ __forceinline__ Four load_four_of(simt::Shared<const float> from, unsigned index) {
  const float4 v = simt::load4(from, index);
  return {{v.x, v.y, v.z, v.w}};
}
__device__ __forceinline__ uint2 bf16_four(const Four& f) {
  return make_uint2(bf16_pair(f.x[0], f.x[1]), bf16_pair(f.x[2], f.x[3]));
}
__device__ __forceinline__ Four operator*(const Four& a, const Four& b) {
  return {{a.x[0] * b.x[0], a.x[1] * b.x[1], a.x[2] * b.x[2], a.x[3] * b.x[3]}};
}
__device__ __forceinline__ Four operator*(float a, const Four& b) {
  return {{a * b.x[0], a * b.x[1], a * b.x[2], a * b.x[3]}};
}
template <float f(float)>
__device__ __forceinline__ Four map(const Four& a) {
  return {{f(a.x[0]), f(a.x[1]), f(a.x[2]), f(a.x[3])}};
}

// The sum of squares of row `row` from its 32 parts, added as sum_of_squares adds.
__device__ __forceinline__ float sum_of_parts(simt::Shared<const float> parts, unsigned row) {
  float x[32];
#pragma unroll
  for (int i = 0; i < 32; i += 4) {
    const float4 v = simt::load4(parts, row * kPartsPitch + i);
    x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
#pragma unroll
    for (int i = 0; i < 16; ++i)
      if (i < offset) x[i] += x[i + offset];
  return x[0];
}

// The table of decays across sub-chunks and, of the whole chunk, gamma [K].
template <int K>
__device__ __forceinline__ void decays_across(simt::Shared<const float> total,
                                              simt::Shared<float> cross, float* gamma) {
  constexpr unsigned kOfChannel = kThreads / K;  // threads
  static_assert(kThreads % K == 0);
  const unsigned c = threadIdx.x % K, share = threadIdx.x / K;
  float log[kSubChunks];
#pragma unroll
  for (int b = 0; b < kSubChunks; ++b) log[b] = total[b * K + c];
  if (share == 0) cross[c] = 1;
#pragma unroll
  for (int first = 0; first < kSubChunks; ++first) {
    float sum = 0;
#pragma unroll
    for (int last = first + 1; last <= kSubChunks; ++last) {
      sum += log[last - 1];
      if (across(first, last) % kOfChannel == share)
        cross[across(first, last) * K + c] = elementary::exp2_flushed(sum);
      if (last - first == kSubChunks && share == 0) gamma[c] = elementary::exp2_without_call(sum);
    }
  }
}

// One block of 16 x 8 of k k^T and q k^T: sums over the halves of the channels, added.
struct Products {
  float kk[4], qk[4];
};
// Left rows of 16 from row `left_row` on, right rows of 8 from `right_row` on, multiples of these.
template <int K>
__device__ __forceinline__ Products products(simt::Shared<const std::uint32_t> left,
                                             unsigned left_row,
                                             simt::Shared<const std::uint16_t> right,
                                             unsigned right_row) {
  const Lane l;
  float kk[2][4] = {}, qk[2][4] = {};
#pragma unroll
  for (int step = 0; step < K / 16; ++step) {
    const int at = left_row * K + left_at<K>(l.row, step, l.pair), half = step / (K / 32);
    const uint4 k = simt::load4(left, at), q = simt::load4(left, at + 8 * K);
    const uint2 r = simt::load_four(right, right_row * K + right_at<K>(l.row, step, l.pair));
    const std::uint32_t ak[4] = {k.x, k.y, k.z, k.w}, aq[4] = {q.x, q.y, q.z, q.w},
                        b[2] = {r.x, r.y};
    mma_m16n8k16_bf16(kk[half], ak, b, kk[half]);
    mma_m16n8k16_bf16(qk[half], aq, b, qk[half]);
  }
  Products sum;
#pragma unroll
  for (int e = 0; e < 4; ++e) sum.kk[e] = kk[0][e] + kk[1][e], sum.qk[e] = qk[0][e] + qk[1][e];
  return sum;
}

}  // namespace numgate::kernels::NUMGATE_BACKEND::prepare_bf16
