// Context parallelism: a segment's linear map M, and the fold of summaries. PIPELINE 3.1.
#include "kernels/kda/launch.h"
#include "kernels/kda/tile_dot.cuh"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

// ---- M <- (Diag(gamma) - Kg^T W) M over the segment's chunks, from the identity; 64 columns of M
// a block.
constexpr int kMapThreads = 256, kMapWarps = kMapThreads / 32, kMapColumns = 64,
              kMapPitch = kMapColumns + 4;
constexpr int kHalf = kChunk / 2;  // Kg and W pass through shared memory half a chunk at a time

template <int K>
struct MapLayout {
  static constexpr int kKey = K + 4;
  static constexpr int kg = 0, w = kg + kHalf * kKey;  // [32][kKey]
  static constexpr int D = w + kHalf * kKey;  // [K][kKey] Kg^T W, then Diag(gamma) - Kg^T W
  static constexpr int M = D + K * kKey;      // [K][kMapPitch]
  static constexpr int floats = M + K * kMapPitch;
};

template <int K, class P>
__global__ void __launch_bounds__(kMapThreads) segment_map_kernel(SegmentMapArgs a, P plan) {
  using L = MapLayout<K>;
  const auto kg = simt::dynamic_shared<float>(L::kg * 4, kHalf * L::kKey);
  const auto w = simt::dynamic_shared<float>(L::w * 4, kHalf * L::kKey);
  const auto D = simt::dynamic_shared<float>(L::D * 4, K * L::kKey);
  const auto M = simt::dynamic_shared<float>(L::M * 4, K * kMapPitch);

  const int thread = threadIdx.x, warp = thread / 32, hv = blockIdx.y,
            first_column = blockIdx.x * kMapColumns;
  const Lane l;
  for (int at = thread; at < K * kMapColumns; at += kMapThreads) {
    const int k = at / kMapColumns, c = at % kMapColumns;
    M[k * kMapPitch + c] = a.M0 ? a.M0[(std::int64_t{hv} * K + k) * K + first_column + c]
                           : k == first_column + c ? 1.0f
                                                   : 0.0f;
  }
  for (std::int64_t chunk = 0; chunk < a.dims.chunks(); ++chunk) {
    const std::int64_t slot = chunk * a.dims.HV + hv;
    for (int half = 0; half < 2; ++half) {
      const std::int64_t from = (slot * kChunk + half * kHalf) * K;
      load_matrix<kHalf, K, kMapThreads>(kg, L::kKey, a.chunk.kg, from, plan[Site::kg_store]);
      load_matrix<kHalf, K, kMapThreads>(w, L::kKey, a.chunk.w, from, plan[Site::w_store]);
      __syncthreads();
      for (int job = warp; job < K / 16 * (K / 8); job += kMapWarps) {
        const int row = job % (K / 16) * 16, column = job / (K / 16) * 8;
        float acc[4] = {};
        if (half == 1)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            acc[e] = D[(row + l.row + e / 2 * 8) * L::kKey + column + 2 * l.pair + e % 2];
        dot_tile(
            plan[Site::summary_kw], acc, [&](int r, int k) { return kg[k * L::kKey + row + r]; },
            [&](int k, int c) { return w[k * L::kKey + column + c]; }, 0, kHalf);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int r = row + l.row + e / 2 * 8, c = column + 2 * l.pair + e % 2;
          const float decay = r == c ? a.chunk.gamma[slot * K + r] : 0.0f;
          D[r * L::kKey + c] = half == 0 ? acc[e] : decay - acc[e];
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
          [&](int r, int k) { return D[(row + r) * L::kKey + k]; },
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
