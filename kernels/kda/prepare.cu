// Chunk operands of the chunked prefill: one block a chunk and value head. PIPELINE 2.13a.
#include "kernels/kda/launch.h"
#include "kernels/kda/rows.cuh"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32, kBlocks = kChunk / kSubChunk;
constexpr int kSquare = kChunk + 4;  // row pitch of 64 x 64 matrices, in floats

// Shared memory, in floats. Row pitches are padded by 4 against bank conflicts.
template <int K, int V>
struct Layout {
  static constexpr int kKey = K + 4, kValue = V + 4, kWide = kKey > kValue ? kKey : kValue;
  static constexpr int khat = 0;                      // [64][kKey]
  static constexpr int qhat = khat + kChunk * kKey;   // [64][kKey], later beta v [64][kValue]
  static constexpr int G = qhat + kChunk * kWide;     // [64][kKey], later beta k exp2 G
  static constexpr int A = G + kChunk * kKey;         // [64][kSquare], upper blocks are scratch
  static constexpr int right = A + kChunk * kSquare;  // [48][kKey]
  static constexpr int left_k = right + 48 * kKey;    // [16][kKey]
  static constexpr int left_q = left_k + kSubChunk * kKey;  // [16][kKey]
  static constexpr int T = right;  // [64][kSquare], after the off-diagonal blocks
  static constexpr int after_T = T + kChunk * kSquare, after_left = left_q + kSubChunk * kKey;
  static constexpr int beta = after_T > after_left ? after_T : after_left;  // [64]
  static constexpr int floats = beta + kChunk;
};

template <int K, int V, class P>
__global__ void __launch_bounds__(kThreads) prepare_kernel(PrepareArgs a, P plan) {
  using L = Layout<K, V>;
  constexpr int N = K / 32;
  const auto khat = simt::dynamic_shared<float>(L::khat * 4, kChunk * L::kKey);
  const auto qhat = simt::dynamic_shared<float>(L::qhat * 4, kChunk * L::kWide);
  const auto G = simt::dynamic_shared<float>(L::G * 4, kChunk * L::kKey);
  const auto A = simt::dynamic_shared<float>(L::A * 4, kChunk * kSquare);
  const auto right = simt::dynamic_shared<float>(L::right * 4, 48 * L::kKey);
  const auto left_k = simt::dynamic_shared<float>(L::left_k * 4, kSubChunk * L::kKey);
  const auto left_q = simt::dynamic_shared<float>(L::left_q * 4, kSubChunk * L::kKey);
  const auto T = simt::dynamic_shared<float>(L::T * 4, kChunk * kSquare);
  const auto beta = simt::dynamic_shared<float>(L::beta * 4, kChunk);

  const KdaDims& d = a.dims;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, hv = blockIdx.y;
  const std::int64_t chunk = blockIdx.x, slot = chunk * d.HV + hv;  // [chunks, HV]
  const std::int64_t begin = a.packing.begin ? a.packing.begin[chunk] : chunk * kChunk;
  const std::int64_t end = a.packing.begin ? a.packing.end[chunk] : d.T;

  for (int r = warp; r < kChunk; r += kWarps) {
    const PreparedRow<K, P> row(d, a.in, plan, begin + r, begin + r < end, hv);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int at = r * L::kKey + lane * N + i;
      khat[at] = row.k[i], qhat[at] = row.q[i], G[at] = row.g[i] * kLog2e;
    }
    if (lane == 0) beta[r] = row.beta;
  }
  __syncthreads();

  for (int c = thread; c < K; c += kThreads) {
    float sum = 0;
    for (int r = 0; r < kChunk; ++r) {
      sum = round_to(plan[Site::cumsum], sum + G[r * L::kKey + c]);
      G[r * L::kKey + c] = sum;
    }
    a.out.gamma[slot * K + c] = round_to(plan[Site::gamma], elementary::exp2(sum));
  }
  __syncthreads();

  for (int r = warp; r < kChunk; r += kWarps) {
    float kg[N], qg[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int c = lane * N + i, at = r * L::kKey + c;
      kg[i] = khat[at] * elementary::exp2(G[(kChunk - 1) * L::kKey + c] - G[at]);
      qg[i] = qhat[at] * elementary::exp2(G[at]);
    }
    store_elements<N>(a.out.kg, (slot * kChunk + r) * K + lane * N, plan[Site::kg_store], kg);
    store_elements<N>(a.out.qg, (slot * kChunk + r) * K + lane * N, plan[Site::qg_store], qg);
  }

  // Off-diagonal blocks of row block I, decays taken against its first row: every exponent is <= 0.
  for (int I = 1; I < kBlocks; ++I) {
    const int anchor = I * kSubChunk * L::kKey;
    for (int r = warp; r < kSubChunk * (I + 1); r += kWarps)
      for (int c = lane; c < K; c += 32) {
        const int at = r * L::kKey + c;
        if (r < kSubChunk * I) {
          right[at] = khat[at] * elementary::exp2(G[anchor + c] - G[at]);
        } else {
          const int to = (r - kSubChunk * I) * L::kKey + c;
          const float decay = elementary::exp2(G[at] - G[anchor + c]);
          left_k[to] = khat[at] * decay, left_q[to] = qhat[at] * decay;
        }
      }
    __syncthreads();
    for (int job = warp; job < 4 * I; job += kWarps) {
      const bool query = job >= 2 * I;
      const int column = job % (2 * I) * 8;
      const auto left = query ? left_q : left_k;
      float acc[4] = {};
      dot_tile(
          query ? plan[Site::aqk_dot] : plan[Site::akk_dot], acc,
          [&](int r, int k) { return left[r * L::kKey + k]; },
          [&](int k, int c) { return right[(column + c) * L::kKey + k]; }, 0, K);
      const Lane l;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = I * kSubChunk + l.row + 8 * half, col = column + 2 * l.pair;
        const float pair[2] = {acc[2 * half], acc[2 * half + 1]};
        if (query) {
          store_elements<2>(a.out.aqk, (slot * kChunk + row) * kChunk + col, plan[Site::aqk_store],
                            pair);
        } else {
          A[row * kSquare + col] = beta[row] * pair[0],
                            A[row * kSquare + col + 1] = beta[row] * pair[1];
        }
      }
    }
    __syncthreads();
  }

  // Diagonal blocks, pair by pair: no factor of a decay is formed on its own.
  for (int p = thread; p < kBlocks * kSubChunk * kSubChunk; p += kThreads) {
    const int first = p / (kSubChunk * kSubChunk) * kSubChunk;
    const int i = first + p / kSubChunk % kSubChunk, j = first + p % kSubChunk;
    float kk = 0, qk = 0;
    if (i >= j)
      for (int c = 0; c < K; ++c) {
        const Format f = plan[Site::diag_dot];
        const int ic = i * L::kKey + c, jc = j * L::kKey + c;
        const float decayed = round_to(f, khat[jc] * elementary::exp2(G[ic] - G[jc]));
        kk = fmaf(round_to(f, khat[ic]), decayed, kk);
        qk = fmaf(round_to(f, qhat[ic]), decayed, qk);
      }
    A[i * kSquare + j] = i > j ? beta[i] * kk : 0;
    store_element(a.out.aqk, (slot * kChunk + i) * kChunk + j, plan[Site::aqk_store], qk);
  }
  __syncthreads();

  // T = (I + A)^-1. Diagonal blocks by forward substitution, a column a lane.
  {
    const int first = warp * kSubChunk, j = lane;
    if (j < kSubChunk) {
      for (int i = 0; i < kSubChunk; ++i) {
        float sum = i == j ? -1.0f : 0.0f;
        for (int m = j; m < i; ++m)
          sum =
              fmaf(A[(first + i) * kSquare + first + m], T[(first + m) * kSquare + first + j], sum);
        T[(first + i) * kSquare + first + j] = -sum;
      }
    }
  }
  __syncthreads();
  // Blocks below: T_IJ = -T_II (sum_M A_IM T_MJ). The inner sum waits in A's unused upper block (J,
  // I).
  for (int distance = 1; distance < kBlocks; ++distance) {
    const int J = warp * kSubChunk, I = (warp + distance) * kSubChunk;
    const bool busy = warp + distance < kBlocks;
    const Lane l;
    for (int column = 0; busy && column < kSubChunk; column += 8) {
      float acc[4] = {};
      dot_tile(
          plan[Site::inverse], acc, [&](int r, int k) { return A[(I + r) * kSquare + k]; },
          [&](int k, int c) { return T[k * kSquare + J + column + c]; }, J, I);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        A[(J + l.row + e / 2 * 8) * kSquare + I + column + 2 * l.pair + e % 2] = acc[e];
    }
    __syncwarp();
    for (int column = 0; busy && column < kSubChunk; column += 8) {
      float acc[4] = {};
      dot_tile(
          plan[Site::inverse], acc, [&](int r, int k) { return T[(I + r) * kSquare + I + k]; },
          [&](int k, int c) { return A[(J + k) * kSquare + I + column + c]; }, 0, kSubChunk);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        T[(I + l.row + e / 2 * 8) * kSquare + J + column + 2 * l.pair + e % 2] = -acc[e];
    }
    __syncthreads();
  }

  // qhat gives way to beta v, G to beta k exp2 G.
  const auto bv = qhat, bk = G;
  for (int r = warp; r < kChunk; r += kWarps) {
    const std::int64_t t = begin + r;
    float v[V / 32] = {};
    if (t < end)
      load_elements<V / 32>(a.in.v, (t * d.HV + hv) * V + lane * (V / 32), input_format(d.in), v);
#pragma unroll
    for (int i = 0; i < V / 32; ++i) bv[r * L::kValue + lane * (V / 32) + i] = beta[r] * v[i];
    for (int c = lane; c < K; c += 32) {
      const int at = r * L::kKey + c;
      bk[at] = beta[r] * khat[at] * elementary::exp2(G[at]);
    }
  }
  __syncthreads();
  for (int job = warp; job < kBlocks * (V + K) / 8; job += kWarps) {
    const int row = job % kBlocks * kSubChunk, column = job / kBlocks * 8;
    const bool is_u = column < V;
    const int col = is_u ? column : column - V, pitch = is_u ? L::kValue : L::kKey;
    const auto right_side = is_u ? bv : bk;
    float acc[4] = {};
    dot_tile(
        is_u ? plan[Site::u_dot] : plan[Site::w_dot], acc,
        [&](int r, int k) { return T[(row + r) * kSquare + k]; },
        [&](int k, int c) { return right_side[k * pitch + col + c]; }, 0, row + kSubChunk);
    const Lane l;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t at = slot * kChunk + row + l.row + 8 * half;
      const float pair[2] = {acc[2 * half], acc[2 * half + 1]};
      if (is_u)
        store_elements<2>(a.out.u, at * V + col + 2 * l.pair, plan[Site::u_store], pair);
      else
        store_elements<2>(a.out.w, at * K + col + 2 * l.pair, plan[Site::w_store], pair);
    }
  }
}

}  // namespace

void launch_prepare(const PrepareArgs& a, const Plan& plan, simt::Stream stream) {
  with_kernel(a.dims.K, a.dims.V, plan, [&](auto k, auto v, auto p) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    const std::int64_t chunks = a.packing.begin ? a.packing.chunks : a.dims.chunks();
    simt::launch("kda.prepare",
                 dim3(static_cast<unsigned>(chunks), static_cast<unsigned>(a.dims.HV)),
                 dim3(kThreads), Layout<K, V>::floats * sizeof(float), stream,
                 prepare_kernel<K, V, decltype(p)>, a, p);
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
