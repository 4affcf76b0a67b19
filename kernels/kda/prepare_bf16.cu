// Chunk operands where everything kept or multiplied is bf16 and the gate is bounded: what
// prepare.cu computes, bit for bit. One block a chunk and value head; a warp holds 16 tokens and
// half of the channels in the layout of mma.sync's fragments, whose k is permuted inside each step
// of 16 (lane p of a row holds channels 4p to 4p + 3), which changes no bit.
#include "kernels/kda/bf16_tiles.cuh"
#include "kernels/kda/chunk_decay.cuh"
#include "kernels/kda/launch.h"
#include "kernels/kda/rows.cuh"
#include "kernels/kda/unit_lower_inverse.cuh"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kMatrix = kChunk * kSquare;

// Decays of a channel across whole sub-chunks: entries of a table [kCross][K].
enum Cross {
  enter = 0,                      // + b: chunk's start to sub-chunk b
  leave = enter + kSubChunks,     // + b: end of sub-chunk b to the chunk's end
  invert = leave + kSubChunks,    // + b: the inverse of sub-chunk b's
  between = invert + kSubChunks,  // + 0, 1, 2: across 1, 2, and 1 to 2
  kCross = between + 3
};

// Shared memory, in bytes.
template <int K, int V>
struct Layout {
  static constexpr int kKey = K + 4;  // row pitch of the log decays
  static constexpr int log_decay =
      0;  // [64][kKey], then two of [64][kSquare], then beta v [64][V] bf16
  static constexpr int bk = log_decay + 8 * kMatrix;        // [64][K] bf16
  static constexpr int right = bk + kChunk * K * 2;         // [64][K] bf16, then T [64][64] bf16
  static constexpr int A = right + kChunk * K * 2;          // [64][kSquare]
  static constexpr int T = A + 4 * kMatrix;                 // [64][kSquare]
  static constexpr int total = T + 4 * kMatrix;             // [4][K]
  static constexpr int cross = total + 4 * kSubChunks * K;  // [kCross][K]
  static constexpr int beta = cross + 4 * kCross * K;       // [64]
  static constexpr int norm_k = beta + 4 * kChunk, norm_q = norm_k + 4 * kChunk;  // [64]
  static constexpr int bytes = norm_q + 4 * kChunk;
  static_assert(kChunk * kKey <= 2 * kMatrix && kChunk * K * 2 >= kChunk * kChunk * 2);
};

// Place of channel c of token r, for 8-byte reads by fragments: groups of 8 channels change places
// by row, so that four rows lie in different banks.
template <int K>
__device__ __forceinline__ int fragment_at(int r, int c) {
  return r * K + ((c / 8 ^ (r & 3) * 2) * 8 | c % 8);
}

struct Four {
  float x[4];
};
__device__ __forceinline__ Four load_four(const void* from, std::int64_t index) {
  Four f;
  load_elements<4>(from, index, Format::bf16, f.x);
  return f;
}
__device__ __forceinline__ Four load_four(simt::Shared<const float> from, int index) {
  const float4 v = simt::load4(from, index);
  return {{v.x, v.y, v.z, v.w}};
}

template <int K, int V>
__global__ void __launch_bounds__(kThreads, 2) prepare_bf16_kernel(PrepareArgs a) {
  using L = Layout<K, V>;
  constexpr int N = K / 32;
  const auto log_decay = simt::dynamic_shared<float>(L::log_decay, kChunk * L::kKey);
  const auto bk = simt::dynamic_shared<std::uint16_t>(L::bk, kChunk * K);
  const auto right = simt::dynamic_shared<std::uint16_t>(L::right, kChunk * K);
  const auto A = simt::dynamic_shared<float>(L::A, kMatrix);
  const auto T = simt::dynamic_shared<float>(L::T, kMatrix);
  const auto total = simt::dynamic_shared<float>(L::total, kSubChunks * K);
  const auto cross = simt::dynamic_shared<float>(L::cross, kCross * K);
  const auto beta = simt::dynamic_shared<float>(L::beta, kChunk);
  const auto norm_k = simt::dynamic_shared<float>(L::norm_k, kChunk);
  const auto norm_q = simt::dynamic_shared<float>(L::norm_q, kChunk);

  const KdaDims& d = a.dims;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, hv = blockIdx.y,
            h = hv / (d.HV / d.H);
  const Lane l;
  const std::int64_t chunk = blockIdx.x, slot = chunk * d.HV + hv;  // [chunks, HV]
  const std::int64_t begin = a.packing.begin ? a.packing.begin[chunk] : chunk * kChunk;
  const std::int64_t end = a.packing.begin ? a.packing.end[chunk] : d.T;

  // Log decays from the start of each sub-chunk.
  const float rate = elementary::exp(a.in.A_log[hv]);
  constexpr int kChannels = kSubChunks * K / kThreads;  // a thread
  {
    const int block = thread / (K / kChannels), c = thread % (K / kChannels) * kChannels;
    float bias[kChannels], sum[kChannels] = {};
#pragma unroll
    for (int i = 0; i < kChannels; ++i) bias[i] = a.in.dt_bias[hv * K + c + i];
#pragma unroll 4
    for (int r = block * kSubChunk; r < (block + 1) * kSubChunk; ++r) {
#pragma unroll
      for (int i = 0; i < kChannels; ++i) {
        const float g =
            begin + r < end
                ? log_decay_of(
                      true,
                      load_element(a.in.gate, ((begin + r) * d.HV + hv) * K + c + i, Dtype::bf16),
                      rate, bias[i])
                : 0.0f;
        sum[i] += g * kLog2e;
        log_decay[r * L::kKey + c + i] = sum[i];
      }
    }
#pragma unroll
    for (int i = 0; i < kChannels; ++i) total[block * K + c + i] = sum[i];
  }
  // Norms.
  for (int r = warp; r < kChunk; r += kWarps) {
    float k[N] = {}, q[N] = {};
    if (begin + r < end) {
      const std::int64_t at = ((begin + r) * d.H + h) * K + lane * N;
      load_elements<N>(a.in.k, at, Format::bf16, k);
      load_elements<N>(a.in.q, at, Format::bf16, q);
    }
    const float inverse_k = inverse_norm(k), inverse_q = inverse_norm(q);
    if (lane == 0) norm_k[r] = inverse_k, norm_q[r] = inverse_q;
  }
  if (thread < kChunk)
    beta[thread] = begin + thread < end ? elementary::sigmoid(load_element(
                                              a.in.beta, (begin + thread) * d.HV + hv, Dtype::bf16))
                                        : 0.0f;
  __syncthreads();
  for (int job = thread; job < (kCross + 1) * K; job += kThreads) {
    const int entry = job / K, c = job % K;
    if (entry == kCross)
      a.out.gamma[slot * K + c] = decay_across<K>(total, c, 0, kSubChunks);
    else if (entry < leave)
      cross[job] = decay_across<K>(total, c, 0, entry - enter);
    else if (entry < invert)
      cross[job] = decay_across<K>(total, c, entry - leave + 1, kSubChunks);
    else if (entry < between)
      cross[job] = elementary::exp2(-total[(entry - invert) * K + c]);
    else
      cross[job] =
          decay_across<K>(total, c, entry == between + 1 ? 2 : 1, entry == between ? 2 : 3);
  }
  __syncthreads();

  // This lane's tokens `row` and `row` + 8 and channels c to c + 3 of each step.
  constexpr int kSteps = K / 32;
  const int block = warp / 2, half = warp % 2, row = block * kSubChunk + l.row;
  const auto channel = [&](int step) { return half * (K / 2) + step * 16 + 4 * l.pair; };
  float key[kSteps][2][4], query[kSteps][2][4];  // decayed since the start of the sub-chunk
  float diagonal_kk[2][4] = {}, diagonal_qk[2][4] = {};
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int c = channel(s);
    const Four in = load_four(cross, (enter + block) * K + c),
               out = load_four(cross, (leave + block) * K + c),
               inverse = load_four(cross, (invert + block) * K + c),
               sum = load_four(total, block * K + c);
    std::uint32_t b[2][2];  // the diagonal block's right side
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = row + 8 * i;
      const std::int64_t t = begin + r;
      Four k{}, q{};
      if (t < end) {
        const std::int64_t at = (t * d.H + h) * K + c;
        k = load_four(a.in.k, at), q = load_four(a.in.q, at);
      }
      const Four log = load_four(log_decay, r * L::kKey + c);
      float kg[4], qg[4], kb[4], kr[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float khat = k.x[e] * norm_k[r] * 1.0f, qhat = q.x[e] * norm_q[r] * query_scale<K>();
        const float enters = elementary::exp2(log.x[e]),
                    leaves = elementary::exp2(sum.x[e] - log.x[e]);
        const float since_start = enters * in.x[e];
        kr[e] = khat * leaves;
        kg[e] = khat * (leaves * out.x[e]);
        qg[e] = qhat * since_start;
        kb[e] = beta[r] * khat * since_start;
        key[s][i][e] = khat * enters;
        query[s][i][e] = qhat * enters;
      }
      store_elements<4>(a.out.kg, (slot * kChunk + r) * K + c, Format::bf16, kg);
      store_elements<4>(a.out.qg, (slot * kChunk + r) * K + c, Format::bf16, qg);
#pragma unroll
      for (int e = 0; e < 4; e += 2) {
        simt::store_pair(bk, swizzled<K>(r, c + e), bf16_pair(kb[e], kb[e + 1]));
        simt::store_pair(right, fragment_at<K>(r, c + e), bf16_pair(kr[e], kr[e + 1]));
        b[i][e / 2] = bf16_pair(kr[e] * inverse.x[e], kr[e + 1] * inverse.x[e + 1]);
      }
    }
    const auto fragment = [](const float(&x)[2][4], std::uint32_t(&f)[4]) {
#pragma unroll
      for (int i = 0; i < 4; ++i) f[i] = bf16_pair(x[i % 2][i / 2 * 2], x[i % 2][i / 2 * 2 + 1]);
    };
    std::uint32_t ak[4], aq[4];
    fragment(key[s], ak);
    fragment(query[s], aq);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      mma_m16n8k16_bf16(diagonal_kk[n], ak, b[n], diagonal_kk[n]);
      mma_m16n8k16_bf16(diagonal_qk[n], aq, b[n], diagonal_qk[n]);
    }
  }
  __syncthreads();  // `right` is whole, and the log decays give way to the second halves' sums

  const auto kk = half == 0 ? A : simt::dynamic_shared<float>(L::log_decay, kMatrix);
  const auto qk = half == 0 ? T : simt::dynamic_shared<float>(L::log_decay + 4 * kMatrix, kMatrix);
  const auto keep = [&](simt::Shared<float> to, int J, const float(&x)[2][4]) {
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        to[(row + e / 2 * 8) * kSquare + J * kSubChunk + 8 * n + 2 * l.pair + e % 2] = x[n][e];
  };
  keep(kk, block, diagonal_kk);
  keep(qk, block, diagonal_qk);
  for (int J = 0; J < block; ++J) {
    float sum_kk[2][4] = {}, sum_qk[2][4] = {};
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const int c = channel(s);
      Four scale{{1, 1, 1, 1}};
      if (block - J > 1) scale = load_four(cross, (between + (block - J == 3 ? 2 : J)) * K + c);
      std::uint32_t ak[4], aq[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int e = i / 2 * 2;
        ak[i] = bf16_pair(key[s][i % 2][e] * scale.x[e], key[s][i % 2][e + 1] * scale.x[e + 1]);
        aq[i] = bf16_pair(query[s][i % 2][e] * scale.x[e], query[s][i % 2][e + 1] * scale.x[e + 1]);
      }
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        std::uint32_t b[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          b[i] = simt::load_pair(right, fragment_at<K>(J * kSubChunk + 8 * n + l.row, c + 2 * i));
        mma_m16n8k16_bf16(sum_kk[n], ak, b, sum_kk[n]);
        mma_m16n8k16_bf16(sum_qk[n], aq, b, sum_qk[n]);
      }
    }
    keep(kk, J, sum_kk);
    keep(qk, J, sum_qk);
  }
  __syncthreads();

  // The halves join: A = beta k k^T below the diagonal, Aqk = q k^T up to it.
  const auto high_kk = simt::dynamic_shared<float>(L::log_decay, kMatrix);
  const auto high_qk = simt::dynamic_shared<float>(L::log_decay + 4 * kMatrix, kMatrix);
  for (int at = thread * 2; at < kChunk * kChunk; at += kThreads * 2) {
    const int r = at / kChunk, c = at % kChunk, i = r * kSquare + c;
    if (c / kSubChunk > r / kSubChunk) continue;
    float products[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      products[e] = c + e <= r ? T[i + e] + high_qk[i + e] : 0.0f;
      A[i + e] = c + e < r ? beta[r] * (A[i + e] + high_kk[i + e]) : 0.0f;
    }
    store_elements<2>(a.out.aqk, (slot * kChunk + r) * kChunk + c, Format::bf16, products);
  }
  __syncthreads();

  const auto bv = simt::dynamic_shared<std::uint16_t>(L::log_decay, kChunk * V);
  if (thread < kChunk) {
    invert_diagonal_blocks(A, T, thread);
  } else {
    for (int at = (thread - kChunk) * 8; at < kChunk * V; at += (kThreads - kChunk) * 8) {
      const int r = at / V, c = at % V;
      float v[8] = {};
      if (begin + r < end)
        load_elements<8>(a.in.v, ((begin + r) * d.HV + hv) * V + c, Format::bf16, v);
#pragma unroll
      for (int e = 0; e < 8; e += 2)
        simt::store_pair(bv, swizzled<V>(r, c + e), bf16_pair(beta[r] * v[e], beta[r] * v[e + 1]));
    }
  }
  __syncthreads();
  invert_lower_blocks<kWarps>(Format::ieee, A, T);

  const auto inverse = simt::dynamic_shared<std::uint16_t>(L::right, kChunk * kChunk);
  for (int at = thread * 2; at < kChunk * kChunk; at += kThreads * 2) {
    const int r = at / kChunk, c = at % kChunk;
    if (c / kSubChunk <= r / kSubChunk)
      simt::store_pair(inverse, swizzled<kChunk>(r, c),
                       bf16_pair(T[r * kSquare + c], T[r * kSquare + c + 1]));
  }
  __syncthreads();

  // U = T (beta v) and W = T (beta k decayed), 16 columns a warp at a time.
  for (int group = warp; group < (V + K) / 16; group += kWarps) {
    const bool is_u = group < V / 16;
    const int column = (is_u ? group : group - V / 16) * 16;
    float sum[kSubChunks][2][4] = {};
#pragma unroll
    for (int k = 0; k < kSubChunks; ++k) {
      std::uint32_t b[4];
      if (is_u)
        load_b<V>(b, bv, k * 16, column);
      else
        load_b<K>(b, bk, k * 16, column);
#pragma unroll
      for (int m = k; m < kSubChunks; ++m) {
        std::uint32_t t[4];
        load_a<kChunk>(t, inverse, m * 16, k * 16);
        mma_m16n8k16_bf16(sum[m][0], t, b, sum[m][0]);
        mma_m16n8k16_bf16(sum[m][1], t, b + 2, sum[m][1]);
      }
    }
    __syncwarp();
    // The columns that only this warp read now hold the result, to be written 16 bytes at a time.
    const auto stage = is_u ? bv : bk;
    const auto place = [&](int r, int c) { return is_u ? swizzled<V>(r, c) : swizzled<K>(r, c); };
#pragma unroll
    for (int m = 0; m < kSubChunks; ++m)
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          simt::store_pair(stage, place(m * 16 + l.row + 8 * i, column + 8 * n + 2 * l.pair),
                           bf16_pair(sum[m][n][2 * i], sum[m][n][2 * i + 1]));
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = i * 16 + lane / 2, c = column + lane % 2 * 8;
      const std::int64_t to = (slot * kChunk + r) * (is_u ? V : K) + c;
      simt::store8(static_cast<std::uint16_t*>(is_u ? a.out.u : a.out.w) + to,
                   simt::load8(stage, place(r, c)));
    }
  }
}

}  // namespace

bool prepare_in_bf16(const PrepareArgs& a, const Plan& plan) {
  for (Site s : {Site::akk_dot, Site::aqk_dot, Site::diag_dot, Site::u_dot, Site::w_dot,
                 Site::u_store, Site::w_store, Site::kg_store, Site::qg_store, Site::aqk_store})
    if (plan[s] != Format::bf16) return false;
  for (Site s : {Site::norm, Site::gate, Site::beta, Site::cumsum, Site::gamma, Site::inverse})
    if (plan[s] != Format::ieee) return false;
  return a.dims.in == Dtype::bf16 && a.dims.bounded_gate && !a.in.prepared;
}

void launch_prepare_bf16(const PrepareArgs& a, const Plan&, simt::Stream stream) {
  with_shape(a.dims.K, a.dims.V, [&](auto k, auto v) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    const std::int64_t chunks = a.packing.begin ? a.packing.chunks : a.dims.chunks();
    simt::launch("kda.prepare_bf16",
                 dim3(static_cast<unsigned>(chunks), static_cast<unsigned>(a.dims.HV)),
                 dim3(kThreads), Layout<K, V>::bytes, stream, prepare_bf16_kernel<K, V>, a);
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
