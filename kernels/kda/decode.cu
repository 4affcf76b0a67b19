// Decode: one token against the state, and against a checkpoint with a ring of records.
// PIPELINE 2.13b, 3.5. A warp has a quarter of the key rows, whose partial sums are added as
// (p0 + p1) + (p2 + p3); in replay and flush a block owns 32 columns, one a lane.
#include "kernels/kda/launch.h"
#include "kernels/kda/rows.cuh"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

constexpr int kThreads = 128, kWarps = 4, kColumns = 32, kMaxRing = 64;

// Operands of token t in shared memory, computed by warp 0: q, k, beta and, as asked, g or exp(g).
template <int K, bool decay, class P>
__device__ __forceinline__ void share_token(const KdaDims& d, const KdaInputs& in, const P& plan,
                                            std::int64_t t, int hv, simt::Shared<float> q,
                                            simt::Shared<float> k, simt::Shared<float> g,
                                            simt::Shared<float> beta) {
  constexpr int N = K / 32;
  if (threadIdx.x < 32) {
    const PreparedRow<K, P> row(d, in, plan, t, true, hv);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int c = threadIdx.x * N + i;
      q[c] = row.q[i], k[c] = row.k[i], g[c] = decay ? elementary::exp(row.g[i]) : row.g[i];
    }
    if (threadIdx.x == 0) beta[0] = row.beta;
  }
  __syncthreads();
}

// Sums over the four warps of N columns a lane, the same values in each; `slots` is [4][N][32],
// reusable after the next barrier.
template <int N>
__device__ __forceinline__ void sum_warps(simt::Shared<float> slots, float (&x)[N]) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < N; ++n) slots[(warp * N + n) * 32 + lane] = x[n];
  __syncthreads();
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const auto part = [&](int w) { return slots[(w * N + n) * 32 + lane]; };
    x[n] = (part(0) + part(1)) + (part(2) + part(3));
  }
}
__device__ __forceinline__ float sum_warps(simt::Shared<float> slots, float x) {
  float one[1] = {x};
  sum_warps<1>(slots, one);
  return one[0];
}

// A block carries a whole head: a lane N neighbouring columns, a warp a quarter of the rows.
template <int K, int V, class P>
__global__ void __launch_bounds__(kThreads) decode_kernel(DecodeArgs a, P plan) {
  constexpr int kRows = K / kWarps, N = V / 32;
  NUMGATE_SHARED(float, q, K);
  NUMGATE_SHARED(float, k, K);
  NUMGATE_SHARED(float, alpha, K);
  NUMGATE_SHARED(float, beta, 1);
  NUMGATE_SHARED(float, reads, kThreads* N);
  NUMGATE_SHARED(float, outputs, kThreads* N);
  const std::int64_t sequence = blockIdx.y;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, hv = blockIdx.x;
  const Format f = plan[Site::decode_dot];
  const std::int64_t head = sequence * a.dims.HV + hv;
  float* const state = a.state + (head * K + warp * kRows) * V + lane * N;
  float S[kRows][N];
  // The state is most of the traffic: its loads are under way while warp 0 prepares the token.
#pragma unroll
  for (int i = 0; i < kRows; ++i) load_elements<N>(state, std::int64_t{i} * V, Format::ieee, S[i]);
  share_token<K, true>(a.dims, a.in, plan, sequence, hv, q, k, alpha, beta);
  float read[N] = {};
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float decay = alpha[warp * kRows + i], key = round_to(f, k[warp * kRows + i]);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      S[i][n] *= decay;
      read[n] = fmaf(key, round_to(f, S[i][n]), read[n]);
    }
  }
  sum_warps<N>(reads, read);
  float v[N], u[N], o[N] = {};
  load_elements<N>(a.in.v, head * V + lane * N, input_format(a.dims.in), v);
#pragma unroll
  for (int n = 0; n < N; ++n) u[n] = beta[0] * (v[n] - read[n]);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float key = k[warp * kRows + i], query = round_to(f, q[warp * kRows + i]);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      S[i][n] = round_to(plan[Site::state], fmaf(key, u[n], S[i][n]));
      o[n] = fmaf(query, round_to(f, S[i][n]), o[n]);
    }
    store_elements<N>(state, std::int64_t{i} * V, Format::ieee, S[i]);
  }
  sum_warps<N>(outputs, o);
  if (warp != 0) return;
  if (a.o) store_elements<N>(a.o, head * V + lane * N, Format::ieee, o);
  store_elements<N>(a.o_cast, head * V + lane * N, output_format(plan[Site::output], a.dims.in), o);
}

template <int K, int V, class P>
__global__ void __launch_bounds__(kThreads) replay_kernel(ReplayArgs a, P plan) {
  NUMGATE_SHARED(float, q, K);
  NUMGATE_SHARED(float, k, K);
  NUMGATE_SHARED(float, G, K);
  NUMGATE_SHARED(float, beta, 1);
  NUMGATE_SHARED(float, key_weight, kMaxRing);
  NUMGATE_SHARED(float, query_weight, kMaxRing + 1);
  NUMGATE_SHARED(float, reads, kThreads);
  NUMGATE_SHARED(float, outputs, kThreads);
  constexpr int kRows = K / kWarps, N = K / 32;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, hv = blockIdx.y,
            column = blockIdx.x * kColumns + lane;
  const int HV = a.dims.HV;
  const Format f = plan[Site::replay_dot], ring = plan[Site::ring];
  share_token<K, false>(a.dims, a.in, plan, 0, hv, q, k, G, beta);

  // G: cumulative log2 decay since the checkpoint, this token included.
  for (int c = threadIdx.x; c < K; c += kThreads) {
    const float before =
        a.count > 0 ? a.ring.G[(std::int64_t{a.count - 1} * HV + hv) * K + c] : 0.0f;
    G[c] = before + G[c] * kLog2e;
    if (blockIdx.x == 0) {
      const std::int64_t at = (std::int64_t{a.count} * HV + hv) * K + c;
      a.ring.khat[at] = round_to(ring, k[c]), a.ring.G[at] = round_to(ring, G[c]);
    }
  }
  __syncthreads();
  // How far each record is still read by this token's key and query; record `count` is the token
  // itself.
  for (int j = warp; j <= a.count; j += kWarps) {
    float kk = 0, qk = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int c = lane * N + i;
      const std::int64_t at = (std::int64_t{j} * HV + hv) * K + c;
      const float past =
          j < a.count ? elementary::exp2(G[c] - a.ring.G[at]) * a.ring.khat[at] : k[c];
      kk = fmaf(k[c], past, kk), qk = fmaf(q[c], past, qk);
    }
    kk = warp_sum(kk), qk = warp_sum(qk);
    if (lane == 0) {
      if (j < a.count) key_weight[j] = kk;
      query_weight[j] = qk;
    }
  }
  const float* const state = a.state + (std::int64_t{hv} * K + warp * kRows) * V + column;
  float read = 0, o = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int c = warp * kRows + i;
    const float s = round_to(f, state[std::int64_t{i} * V]), decay = elementary::exp2(G[c]);
    read = fmaf(round_to(f, k[c] * decay), s, read);
    o = fmaf(round_to(f, q[c] * decay), s, o);
  }
  read = sum_warps(reads, read);
  o = sum_warps(outputs, o);
  if (warp != 0) return;
  for (int j = 0; j < a.count; ++j) {
    const float u = a.ring.u[(std::int64_t{j} * HV + hv) * V + column];
    read = fmaf(key_weight[j], u, read), o = fmaf(query_weight[j], u, o);
  }
  const float v = load_element(a.in.v, std::int64_t{hv} * V + column, a.dims.in);
  const float u = beta[0] * (v - read);
  o = fmaf(query_weight[a.count], u, o);
  a.ring.u[(std::int64_t{a.count} * HV + hv) * V + column] = round_to(ring, u);
  a.o[hv * V + column] = o;
  store_element(a.o_cast, hv * V + column, output_format(plan[Site::output], a.dims.in), o);
}

// Checkpoint <- exp2(G_end) checkpoint + sum_j (exp2(G_end - G_j) khat_j) u_j.
template <int K, int V, class P>
__global__ void __launch_bounds__(kThreads) flush_kernel(FlushArgs a, P plan) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, hv = blockIdx.y,
            column = blockIdx.x * kColumns + lane;
  for (int c = warp; c < K; c += kWarps) {
    const float end = a.ring.G[(std::int64_t{a.count - 1} * a.HV + hv) * K + c];
    float sum = 0;
    for (int j = 0; j < a.count; ++j) {
      const std::int64_t at = (std::int64_t{j} * a.HV + hv) * K + c;
      const float key = elementary::exp2(end - a.ring.G[at]) * a.ring.khat[at];
      sum = fmaf(key, a.ring.u[(std::int64_t{j} * a.HV + hv) * V + column], sum);
    }
    float& s = a.state[(std::int64_t{hv} * K + c) * V + column];
    s = round_to(plan[Site::state], fmaf(elementary::exp2(end), s, sum));
  }
}

}  // namespace

void launch_decode(const DecodeArgs& a, const Plan& plan, simt::Stream stream) {
  with_fp32_kernel(a.dims.K, a.dims.V, plan, [&](auto k, auto v, auto p) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    simt::launch("kda.decode",
                 dim3(static_cast<unsigned>(a.dims.HV), static_cast<unsigned>(a.dims.T)),
                 dim3(kThreads), 0, stream, decode_kernel<K, V, decltype(p)>, a, p);
  });
}

void launch_replay(const ReplayArgs& a, const Plan& plan, simt::Stream stream) {
  if (a.ring.capacity > kMaxRing)
    throw UsageError("schedule", "replay@" + std::to_string(a.ring.capacity),
                     "a ring holds at most " + std::to_string(kMaxRing) + " records");
  with_fp32_kernel(a.dims.K, a.dims.V, plan, [&](auto k, auto v, auto p) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    simt::launch("kda.replay", dim3(V / kColumns, static_cast<unsigned>(a.dims.HV)), dim3(kThreads),
                 0, stream, replay_kernel<K, V, decltype(p)>, a, p);
  });
}

void launch_flush(const FlushArgs& a, const Plan& plan, simt::Stream stream) {
  with_fp32_kernel(a.K, a.V, plan, [&](auto k, auto v, auto p) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    simt::launch("kda.flush", dim3(V / kColumns, static_cast<unsigned>(a.HV)), dim3(kThreads), 0,
                 stream, flush_kernel<K, V, decltype(p)>, a, p);
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
