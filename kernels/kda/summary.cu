// Context parallelism: a segment's linear map M, and the fold of summaries. PIPELINE 3.1.
#include "kernels/kda/launch.h"
#include "kernels/kda/tile_dot.cuh"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

// ---- M <- (Diag(gamma) - Kg^T W) M over the segment's chunks, from the identity; 64 columns of M
// a block.
constexpr int kMapThreads = 256, kMapWarps = kMapThreads / 32, kMapColumns = 64;
constexpr int kHalf = kChunk / 2;  // a dense chain has room for half a chunk of Kg and W
// In floats. Rows that a tile reads along k lie 4 banks apart, those that it reads across k 8.
constexpr int kMapPitch = kMapColumns + 8;

template <int K>
struct MapLayout {
  static constexpr int kAlong = K + 4, kAcross = K + 8;
  static constexpr int M = 0;  // [K][kMapPitch]
  static constexpr int kg = M + K * kMapPitch;
  // Dense: Kg and W [32][kAcross], and Kg^T W, then Diag(gamma) - Kg^T W [K][kAlong].
  static constexpr int half_w = kg + kHalf * kAcross, D = half_w + kHalf * kAcross;
  // Diagonal: Kg [64][kAcross], W [64][kAlong], W M [64][kMapPitch].
  static constexpr int w = kg + kChunk * kAcross, X = w + kChunk * kAlong;
  static constexpr int dense = D + K * kAlong, diagonal = X + kChunk * kMapPitch;
  static constexpr int floats = dense > diagonal ? dense : diagonal;
};

// One chunk joins M: the dense product (Diag(gamma) - Kg^T W) M.
template <int K, class P>
__device__ __forceinline__ void join_dense(const SegmentMapArgs& a, const P& plan,
                                           std::int64_t slot, simt::Shared<float> M) {
  using L = MapLayout<K>;
  const auto kg = simt::dynamic_shared<float>(L::kg * 4, kHalf * L::kAcross);
  const auto w = simt::dynamic_shared<float>(L::half_w * 4, kHalf * L::kAcross);
  const auto D = simt::dynamic_shared<float>(L::D * 4, K * L::kAlong);
  const int warp = threadIdx.x / 32;
  const Lane l;
  for (int half = 0; half < 2; ++half) {
    const std::int64_t from = (slot * kChunk + half * kHalf) * K;
    load_matrix<kHalf, K, kMapThreads>(kg, L::kAcross, a.chunk.kg, from, plan[Site::kg_store]);
    load_matrix<kHalf, K, kMapThreads>(w, L::kAcross, a.chunk.w, from, plan[Site::w_store]);
    __syncthreads();
    for (int job = warp; job < K / 16 * (K / 8); job += kMapWarps) {
      const int row = job % (K / 16) * 16, column = job / (K / 16) * 8;
      float acc[4] = {};
      if (half == 1)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          acc[e] = D[(row + l.row + e / 2 * 8) * L::kAlong + column + 2 * l.pair + e % 2];
      dot_tile(
          plan[Site::summary_kw], acc, [&](int r, int k) { return kg[k * L::kAcross + row + r]; },
          [&](int k, int c) { return w[k * L::kAcross + column + c]; }, 0, kHalf);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int r = row + l.row + e / 2 * 8, c = column + 2 * l.pair + e % 2;
        const float decay = r == c ? a.chunk.gamma[slot * K + r] : 0.0f;
        D[r * L::kAlong + c] = half == 0 ? acc[e] : decay - acc[e];
      }
    }
    __syncthreads();
  }
  constexpr int kRows = K / 16,
                kTiles = kRows * (kMapColumns / 8) / kMapWarps;  // tiles of M a warp
  float acc[kTiles][4] = {};
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    const int row = (warp + i * kMapWarps) % kRows * 16,
              column = (warp + i * kMapWarps) / kRows * 8;
    dot_tile(
        plan[Site::summary_chain], acc[i],
        [&](int r, int k) { return D[(row + r) * L::kAlong + k]; },
        [&](int k, int c) { return M[k * kMapPitch + column + c]; }, 0, K);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    const int row = (warp + i * kMapWarps) % kRows * 16,
              column = (warp + i * kMapWarps) / kRows * 8;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      M[(row + l.row + e / 2 * 8) * kMapPitch + column + 2 * l.pair + e % 2] = acc[i][e];
  }
  __syncthreads();
}

// One chunk joins M: gamma M - Kg^T (W M), the running M outside the tensor core.
template <int K, class P>
__device__ __forceinline__ void join_diagonal(const SegmentMapArgs& a, const P& plan,
                                              std::int64_t slot, simt::Shared<float> M) {
  using L = MapLayout<K>;
  constexpr Format kLowRank = Format::tf32x3;
  const auto kg = simt::dynamic_shared<float>(L::kg * 4, kChunk * L::kAcross);
  const auto w = simt::dynamic_shared<float>(L::w * 4, kChunk * L::kAlong);
  const auto X = simt::dynamic_shared<float>(L::X * 4, kChunk * kMapPitch);
  const int warp = threadIdx.x / 32;
  const Lane l;
  const std::int64_t from = slot * kChunk * K;
  load_matrix<kChunk, K, kMapThreads>(kg, L::kAcross, a.chunk.kg, from, plan[Site::kg_store]);
  load_matrix<kChunk, K, kMapThreads>(w, L::kAlong, a.chunk.w, from, plan[Site::w_store]);
  __syncthreads();
  for (int job = warp; job < kChunk / 16 * (kMapColumns / 8); job += kMapWarps) {
    const int row = job % (kChunk / 16) * 16, column = job / (kChunk / 16) * 8;
    float acc[4] = {};
    dot_tile(
        kLowRank, acc, [&](int r, int k) { return w[(row + r) * L::kAlong + k]; },
        [&](int k, int c) { return M[k * kMapPitch + column + c]; }, 0, K);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      X[(row + l.row + e / 2 * 8) * kMapPitch + column + 2 * l.pair + e % 2] = acc[e];
  }
  __syncthreads();
  for (int job = warp; job < K / 16 * (kMapColumns / 8); job += kMapWarps) {
    const int row = job % (K / 16) * 16, column = job / (K / 16) * 8;
    float acc[4] = {};
    dot_tile(
        kLowRank, acc, [&](int r, int k) { return kg[k * L::kAcross + row + r]; },
        [&](int k, int c) { return X[k * kMapPitch + column + c]; }, 0, kChunk);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int k = row + l.row + e / 2 * 8, at = k * kMapPitch + column + 2 * l.pair + e % 2;
      M[at] = fmaf(a.chunk.gamma[slot * K + k], M[at], -acc[e]);
    }
  }
  __syncthreads();
}

template <int K, class P>
__global__ void __launch_bounds__(kMapThreads) segment_map_kernel(SegmentMapArgs a, P plan) {
  const auto M = simt::dynamic_shared<float>(MapLayout<K>::M * 4, K * kMapPitch);
  const int thread = threadIdx.x, hv = blockIdx.y, first_column = blockIdx.x * kMapColumns;
  for (int at = thread; at < K * kMapColumns; at += kMapThreads) {
    const int k = at / kMapColumns, c = at % kMapColumns;
    M[k * kMapPitch + c] = a.M0 ? a.M0[(std::int64_t{hv} * K + k) * K + first_column + c]
                           : k == first_column + c ? 1.0f
                                                   : 0.0f;
  }
  for (std::int64_t chunk = 0; chunk < a.dims.chunks(); ++chunk) {
    const std::int64_t slot = chunk * a.dims.HV + hv;
    if (plan[Site::summary_chain] == Format::diag_tf32x3)
      join_diagonal<K>(a, plan, slot, M);
    else
      join_dense<K>(a, plan, slot, M);
  }
  for (int at = thread; at < K * kMapColumns; at += kMapThreads) {
    const int k = at / kMapColumns, c = at % kMapColumns;
    const float m = M[k * kMapPitch + c];
    a.M[(std::int64_t{hv} * K + k) * K + first_column + c] =
        a.hand_off ? round_to(plan[Site::handoff], m) : m;
  }
}

// ---- F <- M_r F + B_r over the summaries in order; 32 columns of F a block.
constexpr int kMergeThreads = 128, kMergeWarps = kMergeThreads / 32, kMergeColumns = 32,
              kMergePitch = kMergeColumns + 4;

template <int K>
struct MergeLayout {
  static constexpr int kKey = K + 4;
  static constexpr int M = 0, F = M + K * kKey;  // [K][kKey], [K][kMergePitch]
  static constexpr int floats = F + K * kMergePitch;
};

template <int K, int V, class P>
__global__ void __launch_bounds__(kMergeThreads) merge_kernel(MergeArgs a, P plan) {
  using L = MergeLayout<K>;
  const auto M = simt::dynamic_shared<float>(L::M * 4, K * L::kKey);
  const auto F = simt::dynamic_shared<float>(L::F * 4, K * kMergePitch);
  const int thread = threadIdx.x, warp = thread / 32, hv = blockIdx.y,
            first_column = blockIdx.x * kMergeColumns;
  const Lane l;
  for (int at = thread; at < K * kMergeColumns; at += kMergeThreads) {
    const int k = at / kMergeColumns, c = at % kMergeColumns;
    F[k * kMergePitch + c] =
        a.state0 ? a.state0[(std::int64_t{hv} * K + k) * V + first_column + c] : 0;
  }
  for (int s = 0; s < a.summaries; ++s) {
    const std::int64_t slot = std::int64_t{s} * a.HV + hv;
    load_matrix<K, K, kMergeThreads>(M, L::kKey, a.M, slot * K * K, Format::ieee);
    __syncthreads();
    constexpr int kRows = K / 16, kTiles = kRows * (kMergeColumns / 8) / kMergeWarps;
    float acc[kTiles][4] = {};
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      const int row = (warp + i * kMergeWarps) % kRows * 16,
                column = (warp + i * kMergeWarps) / kRows * 8;
      dot_tile(
          plan[Site::merge_dot], acc[i], [&](int r, int k) { return M[(row + r) * L::kKey + k]; },
          [&](int k, int c) { return F[k * kMergePitch + column + c]; }, 0, K);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      const int row = (warp + i * kMergeWarps) % kRows * 16,
                column = (warp + i * kMergeWarps) / kRows * 8;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int k = row + l.row + e / 2 * 8, c = column + 2 * l.pair + e % 2;
        F[k * kMergePitch + c] =
            round_to(plan[Site::handoff], acc[i][e] + a.B[(slot * K + k) * V + first_column + c]);
      }
    }
    __syncthreads();
  }
  for (int at = thread; at < K * kMergeColumns; at += kMergeThreads) {
    const int k = at / kMergeColumns, c = at % kMergeColumns;
    a.state[(std::int64_t{hv} * K + k) * V + first_column + c] = F[k * kMergePitch + c];
  }
}

}  // namespace

void launch_segment_map(const SegmentMapArgs& a, const Plan& plan, simt::Stream stream) {
  with_kernel(a.dims.K, a.dims.V, plan, [&](auto k, auto, auto p) {
    constexpr int K = decltype(k)::value;
    simt::launch("kda.segment_map", dim3(K / kMapColumns, static_cast<unsigned>(a.dims.HV)),
                 dim3(kMapThreads), MapLayout<K>::floats * sizeof(float), stream,
                 segment_map_kernel<K, decltype(p)>, a, p);
  });
}

void launch_merge(const MergeArgs& a, const Plan& plan, simt::Stream stream) {
  with_kernel(a.K, a.V, plan, [&](auto k, auto v, auto p) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    simt::launch("kda.merge", dim3(V / kMergeColumns, static_cast<unsigned>(a.HV)),
                 dim3(kMergeThreads), MergeLayout<K>::floats * sizeof(float), stream,
                 merge_kernel<K, V, decltype(p)>, a, p);
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
