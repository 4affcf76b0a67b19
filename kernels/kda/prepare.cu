// Chunk operands of the chunked prefill: one block a chunk and value head. PIPELINE 2.13a.
#include "kernels/kda/chunk_decay.cuh"
#include "kernels/kda/launch.h"
#include "kernels/kda/rows.cuh"
#include "kernels/kda/unit_lower_inverse.cuh"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32, kBlocks = kSubChunks;

// Shared memory, in floats. Row pitches are padded by 4 against bank conflicts.
template <int K, int V>
struct Layout {
  static constexpr int kKey = K + 4, kValue = V + 4, kWide = kKey > kValue ? kKey : kValue;
  static constexpr int khat = 0;                        // [64][kKey]
  static constexpr int qhat = khat + kChunk * kKey;     // [64][kKey], later v [64][kValue]
  static constexpr int L = qhat + kChunk * kWide;       // [64][kKey], later k exp2 G
  static constexpr int total = L + kChunk * kKey;       // [4][K]
  static constexpr int between = total + kBlocks * K;   // [4][K]
  static constexpr int within = between + kBlocks * K;  // [4][K]
  static constexpr int A = within + kBlocks * K;        // [64][kSquare], upper blocks are scratch
  static constexpr int right = A + kChunk * kSquare;    // [64][kKey]
  static constexpr int left_k = right + kChunk * kKey;  // [16][kKey]
  static constexpr int left_q = left_k + kSubChunk * kKey;  // [16][kKey]
  static constexpr int T = right;                           // [64][kSquare], after the products
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
  const auto log_decay = simt::dynamic_shared<float>(L::L * 4, kChunk * L::kKey);
  const auto total = simt::dynamic_shared<float>(L::total * 4, kBlocks * K);
  const auto between = simt::dynamic_shared<float>(L::between * 4, kBlocks * K);
  const auto within = simt::dynamic_shared<float>(L::within * 4, kBlocks * K);
  const auto A = simt::dynamic_shared<float>(L::A * 4, kChunk * kSquare);
  const auto right = simt::dynamic_shared<float>(L::right * 4, kChunk * L::kKey);
  const auto left_k = simt::dynamic_shared<float>(L::left_k * 4, kSubChunk * L::kKey);
  const auto left_q = simt::dynamic_shared<float>(L::left_q * 4, kSubChunk * L::kKey);
  const auto T = simt::dynamic_shared<float>(L::T * 4, kChunk * kSquare);
  const auto beta = simt::dynamic_shared<float>(L::beta * 4, kChunk);

  const KdaDims& d = a.dims;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, hv = blockIdx.y;
  const std::int64_t chunk = blockIdx.x, slot = chunk * d.HV + hv;  // [chunks, HV]
  const std::int64_t begin = a.packing.first_token(chunk);
  const std::int64_t end = a.packing.end_token(d, chunk);

  for (int r = warp; r < kChunk; r += kWarps) {
    const PreparedRow<K, P> row(d, a.in, plan, begin + r, begin + r < end, hv);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int at = r * L::kKey + lane * N + i;
      khat[at] = row.k[i], qhat[at] = row.q[i], log_decay[at] = row.g[i] * kLog2e;
    }
    if (lane == 0) beta[r] = row.beta;
  }
  __syncthreads();

  // Log decays from the start of each sub-chunk of 16; the step over whole ones is apart.
  for (int job = thread; job < kBlocks * K; job += kThreads) {
    const int block = job / K, c = job % K;
    float sum = 0;
    for (int r = block * kSubChunk; r < (block + 1) * kSubChunk; ++r) {
      sum = round_to(plan[Site::cumsum], sum + log_decay[r * L::kKey + c]);
      log_decay[r * L::kKey + c] = sum;
    }
    total[block * K + c] = sum;
  }
  __syncthreads();
  for (int c = thread; c < K; c += kThreads)
    a.out.gamma[slot * K + c] =
        round_to(plan[Site::gamma], elementary::exp2(log_across<K>(total, c, 0, kBlocks)));

  // A right side is decayed to the end of its sub-chunk or, where the diagonal blocks are products
  // too, undecayed to its start; what lies between that and the start of the left side's sub-chunk
  // is a factor of the left side, and the right side's own sub-chunk one of the right.
  const bool factored = d.bounded_gate && plan[Site::diag_dot] != Format::ieee;
  const auto enter = [&](int at) { return elementary::exp2_flushed(log_decay[at]); };
  for (int r = warp; r < kChunk; r += kWarps) {
    const int block = r / kSubChunk;
    float kg[N], qg[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int c = lane * N + i, at = r * L::kKey + c;
      const float since = enter(at);
      right[at] =
          khat[at] * (factored ? elementary::reciprocal(since)
                               : elementary::exp2_flushed(total[block * K + c] - log_decay[at]));
      kg[i] = right[at] * decay_across<K>(total, c, block + !factored, kBlocks);
      qg[i] = qhat[at] * since * decay_across<K>(total, c, 0, block);
    }
    store_elements<N>(a.out.kg, (slot * kChunk + r) * K + lane * N, plan[Site::kg_store], kg);
    store_elements<N>(a.out.qg, (slot * kChunk + r) * K + lane * N, plan[Site::qg_store], qg);
  }
  for (int job = thread; job < kBlocks * K; job += kThreads)
    within[job] = factored ? decay_across<K>(total, job % K, job / K, job / K + 1) : 1.0f;

  // Products by blocks of 16 x 16.
  for (int I = 0; I < kBlocks; ++I) {
    const int first = I * kSubChunk, blocks = I + factored;
    for (int r = warp; r < kSubChunk; r += kWarps)
      for (int c = lane; c < K; c += 32) {
        const int at = (first + r) * L::kKey + c;
        const float since = enter(at);
        left_k[r * L::kKey + c] = khat[at] * since, left_q[r * L::kKey + c] = qhat[at] * since;
      }
    for (int job = thread; job < I * K; job += kThreads)
      between[job] = decay_across<K>(total, job % K, job / K + 1, I);
    __syncthreads();
    for (int job = warp; job < 4 * blocks; job += kWarps) {
      const bool query = job >= 2 * blocks;
      const int column = job % (2 * blocks) * 8, J = column / kSubChunk;
      const auto left = query ? left_q : left_k;
      const Format f = plan[J == I ? Site::diag_dot : query ? Site::aqk_dot : Site::akk_dot];
      float low[4] = {}, high[4] = {};
      const auto multiply = [&](float(&acc)[4], int begin) {
        dot_tile(
            f, acc,
            [&](int r, int k) {
              const float x = left[r * L::kKey + k];
              return J == I ? x : x * between[J * K + k];
            },
            [&](int k, int c) {
              const float x = right[(column + c) * L::kKey + k];
              return J == I ? x : x * within[J * K + k];
            },
            begin, begin + K / 2);
      };
      multiply(low, 0);
      multiply(high, K / 2);
      const Lane l;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = first + l.row + 8 * half, col = column + 2 * l.pair;
        float pair[2] = {low[2 * half] + high[2 * half], low[2 * half + 1] + high[2 * half + 1]};
        if (query) {
          if (col > row) pair[0] = 0;
          if (col + 1 > row) pair[1] = 0;
          store_elements<2>(a.out.aqk, (slot * kChunk + row) * kChunk + col, plan[Site::aqk_store],
                            pair);
        } else {
          A[row * kSquare + col] = row > col ? beta[row] * pair[0] : 0;
          A[row * kSquare + col + 1] = row > col + 1 ? beta[row] * pair[1] : 0;
        }
      }
    }
    __syncthreads();
  }

  // Diagonal blocks pair by pair, where no factor of a decay may be formed on its own.
  for (int p = thread; !factored && p < kBlocks * kSubChunk * kSubChunk; p += kThreads) {
    const int first = p / (kSubChunk * kSubChunk) * kSubChunk;
    const int i = first + p / kSubChunk % kSubChunk, j = first + p % kSubChunk;
    float kk = 0, qk = 0;
    if (i >= j)
      for (int c = 0; c < K; ++c) {
        const Format f = plan[Site::diag_dot];
        const int ic = i * L::kKey + c, jc = j * L::kKey + c;
        const float decayed =
            round_to(f, khat[jc] * elementary::exp2(log_decay[ic] - log_decay[jc]));
        kk = fmaf(round_to(f, khat[ic]), decayed, kk);
        qk = fmaf(round_to(f, qhat[ic]), decayed, qk);
      }
    A[i * kSquare + j] = i > j ? beta[i] * kk : 0;
    store_element(a.out.aqk, (slot * kChunk + i) * kChunk + j, plan[Site::aqk_store], qk);
  }
  __syncthreads();

  if (thread < kChunk) invert_diagonal_blocks(A, T, thread);
  __syncthreads();
  invert_lower_blocks<kWarps>(plan[Site::inverse], A, T);

  // qhat gives way to v, the log decays to k exp2 G.
  const auto v = qhat, bk = log_decay;
  for (int r = warp; r < kChunk; r += kWarps) {
    const std::int64_t t = begin + r;
    float x[V / 32] = {};
    if (t < end)
      load_elements<V / 32>(a.in.v, (t * d.HV + hv) * V + lane * (V / 32), input_format(d.in), x);
#pragma unroll
    for (int i = 0; i < V / 32; ++i) v[r * L::kValue + lane * (V / 32) + i] = x[i];
    for (int c = lane; c < K; c += 32) {
      const int at = r * L::kKey + c;
      bk[at] = khat[at] * enter(at) * decay_across<K>(total, c, 0, r / kSubChunk);
    }
  }
  __syncthreads();
  for (int job = warp; job < kBlocks * (V + K) / 8; job += kWarps) {
    const int row = job % kBlocks * kSubChunk, column = job / kBlocks * 8;
    const bool is_u = column < V;
    const int col = is_u ? column : column - V, pitch = is_u ? L::kValue : L::kKey;
    const auto right_side = is_u ? v : bk;
    float acc[4] = {};
    dot_tile(
        is_u ? plan[Site::u_dot] : plan[Site::w_dot], acc,
        [&](int r, int k) { return T[(row + r) * kSquare + k] * beta[k]; },
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
  if (prepare_in_bf16(a, plan))
    launch_prepare_bf16(a, plan, stream);
  else
    launch_prepare_any(a, plan, stream);
}

void launch_prepare_any(const PrepareArgs& a, const Plan& plan, simt::Stream stream) {
  with_kernel(a.dims.K, a.dims.V, plan, [&](auto k, auto v, auto p) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    const std::int64_t chunks = a.packing.chunk_count(a.dims);
    simt::launch("kda.prepare",
                 dim3(static_cast<unsigned>(chunks), static_cast<unsigned>(a.dims.HV)),
                 dim3(kThreads), Layout<K, V>::floats * sizeof(float), stream,
                 prepare_kernel<K, V, decltype(p)>, a, p);
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
