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
  static constexpr int norms =
      beta + 4 * kChunk;  // [2][64] of k, of q: sums of squares, then their inverse roots
  static constexpr int bytes = norms + 8 * kChunk;
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
__device__ __forceinline__ Four four_of(uint2 x) {
  return {{low_bf16(x.x), high_bf16(x.x), low_bf16(x.y), high_bf16(x.y)}};
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
  const auto norm_k = simt::dynamic_shared<float>(L::norms, 2 * kChunk);
  const auto norm_q = norm_k + kChunk;

  const KdaDims& d = a.dims;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, hv = blockIdx.y,
            h = hv / (d.HV / d.H);
  const Lane l;
  const std::int64_t chunk = blockIdx.x, slot = chunk * d.HV + hv;  // [chunks, HV]
  const std::int64_t begin = a.packing.begin ? a.packing.begin[chunk] : chunk * kChunk;
  const std::int64_t end = a.packing.begin ? a.packing.end[chunk] : d.T;

  // Loads of raw inputs start long before their use. This lane's tokens `row` and `row` + 8 and
  // channels channel(step) to channel(step) + 3.
  constexpr int kSteps = K / 32;
  const int block = warp / 2, half = warp % 2, row = block * kSubChunk + l.row;
  const auto channel = [&](int step) { return half * (K / 2) + step * 16 + 4 * l.pair; };
  constexpr int kRows = kChunk / kWarps, kChannels = kSubChunks * K / kThreads;
  std::uint32_t norm_rows[kRows][N];  // bf16 pairs of k, then of q
  std::uint32_t gates[kSubChunk];     // one or two channels of a sub-chunk's tokens
  uint2 key_in[kSteps][2], query_in[kSteps][2];
  const int gate_block = thread / (K / kChannels),
            gate_channel = thread % (K / kChannels) * kChannels;
  const auto* k_in = static_cast<const std::uint16_t*>(a.in.k);
  const auto* q_in = static_cast<const std::uint16_t*>(a.in.q);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const std::int64_t t = begin + warp + i * kWarps;
#pragma unroll
    for (int n = 0; n < N / 2; ++n) {
      const std::int64_t at = (t * d.H + h) * K + lane * N + 2 * n;
      norm_rows[i][n] = t < end ? simt::load_pair(k_in, at) : 0;
      norm_rows[i][N / 2 + n] = t < end ? simt::load_pair(q_in, at) : 0;
    }
  }
#pragma unroll
  for (int r = 0; r < kSubChunk; ++r) {
    const std::int64_t t = begin + gate_block * kSubChunk + r;
    const auto* g =
        static_cast<const std::uint16_t*>(a.in.gate) + (t * d.HV + hv) * K + gate_channel;
    if constexpr (kChannels == 2)
      gates[r] = t < end ? simt::load_pair(g, 0) : 0;
    else
      gates[r] = t < end ? g[0] : 0;
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float k[N], q[N];
#pragma unroll
    for (int n = 0; n < N / 2; ++n) {
      k[2 * n] = low_bf16(norm_rows[i][n]), k[2 * n + 1] = high_bf16(norm_rows[i][n]);
      q[2 * n] = low_bf16(norm_rows[i][N / 2 + n]),
            q[2 * n + 1] = high_bf16(norm_rows[i][N / 2 + n]);
    }
    const float squares_k = sum_of_squares(k), squares_q = sum_of_squares(q);
    const int r = warp + i * kWarps;
    if (lane == 0) norm_k[r] = squares_k, norm_q[r] = squares_q;
  }
#pragma unroll
  for (int s = 0; s < kSteps; ++s)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::int64_t t = begin + row + 8 * i, at = (t * d.H + h) * K + channel(s);
      key_in[s][i] = t < end ? simt::load_four(k_in, at) : make_uint2(0, 0);
      query_in[s][i] = t < end ? simt::load_four(q_in, at) : make_uint2(0, 0);
    }
  // Log decays from the start of each sub-chunk.
  {
    const float rate = elementary::exp(a.in.A_log[hv]);
    float bias[kChannels], sum[kChannels] = {};
#pragma unroll
    for (int i = 0; i < kChannels; ++i) bias[i] = a.in.dt_bias[hv * K + gate_channel + i];
#pragma unroll
    for (int r = 0; r < kSubChunk; ++r) {
      const int token = gate_block * kSubChunk + r;
#pragma unroll
      for (int i = 0; i < kChannels; ++i) {
        const float raw = i == 0 ? low_bf16(gates[r]) : high_bf16(gates[r]);
        const float g = begin + token < end ? log_decay_of(true, raw, rate, bias[i]) : 0.0f;
        sum[i] += g * kLog2e;
      }
      if constexpr (kChannels == 2)
        simt::store2(log_decay, token * L::kKey + gate_channel, make_float2(sum[0], sum[1]));
      else
        log_decay[token * L::kKey + gate_channel] = sum[0];
    }
#pragma unroll
    for (int i = 0; i < kChannels; ++i) total[gate_block * K + gate_channel + i] = sum[i];
  }
  if (thread < kChunk)
    beta[thread] = begin + thread < end ? elementary::sigmoid(load_element(
                                              a.in.beta, (begin + thread) * d.HV + hv, Dtype::bf16))
                                        : 0.0f;
  __syncthreads();
  if (thread < 2 * kChunk)  // of q, too
    norm_k[thread] = inverse_norm(norm_k[thread]) * (thread < kChunk ? 1.0f : query_scale<K>());
  for (int job = thread; job < (kCross + 1) * K; job += kThreads) {
    const int entry = job / K, c = job % K;
    if (entry == kCross)
      a.out.gamma[slot * K + c] = elementary::exp2(log_across<K>(total, c, 0, kSubChunks));
    else if (entry < leave)
      cross[job] = decay_across<K>(total, c, 0, entry - enter);
    else if (entry < invert)
      cross[job] = decay_across<K>(total, c, entry - leave + 1, kSubChunks);
    else if (entry < between)
      cross[job] = elementary::exp2_flushed(-total[(entry - invert) * K + c]);
    else
      cross[job] =
          decay_across<K>(total, c, entry == between + 1 ? 2 : 1, entry == between ? 2 : 3);
  }
  __syncthreads();

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
      const Four k = four_of(key_in[s][i]), q = four_of(query_in[s][i]);
      const Four log = load_four(log_decay, r * L::kKey + c);
      float kg[4], qg[4], kb[4], kr[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float khat = k.x[e] * norm_k[r], qhat = q.x[e] * norm_q[r];
        const float enters = elementary::exp2_flushed(log.x[e]),
                    leaves = elementary::exp2_flushed(sum.x[e] - log.x[e]);
        const float since_start = enters * in.x[e];
        kr[e] = khat * leaves;
        kg[e] = khat * (leaves * out.x[e]);
        qg[e] = qhat * since_start;
        kb[e] = beta[r] * khat * since_start;
        key[s][i][e] = khat * enters;
        query[s][i][e] = qhat * enters;
      }
      const auto packed = [](const float(&x)[4]) {
        return make_uint2(bf16_pair(x[0], x[1]), bf16_pair(x[2], x[3]));
      };
      const std::int64_t at = (slot * kChunk + r) * K + c;
      simt::store_four(static_cast<std::uint16_t*>(a.out.kg), at, packed(kg));
      simt::store_four(static_cast<std::uint16_t*>(a.out.qg), at, packed(qg));
      simt::store_four(bk, swizzled<K>(r, c), packed(kb));
      simt::store_four(right, fragment_at<K>(r, c), packed(kr));
#pragma unroll
      for (int e = 0; e < 4; e += 2)
        b[i][e / 2] = bf16_pair(kr[e] * inverse.x[e], kr[e + 1] * inverse.x[e + 1]);
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
        const uint2 pair = simt::load_four(right, fragment_at<K>(J * kSubChunk + 8 * n + l.row, c));
        const std::uint32_t b[2] = {pair.x, pair.y};
        mma_m16n8k16_bf16(sum_kk[n], ak, b, sum_kk[n]);
        mma_m16n8k16_bf16(sum_qk[n], aq, b, sum_qk[n]);
      }
    }
    keep(kk, J, sum_kk);
    keep(qk, J, sum_qk);
  }
  __syncthreads();

  // v is under way meanwhile.
  constexpr int kValues = kChunk * V / 8 / kThreads;
  uint4 values[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    const int at = (thread + i * kThreads) * 8;
    const std::int64_t t = begin + at / V;
    values[i] = t < end ? simt::load8(static_cast<const std::uint16_t*>(a.in.v),
                                      (t * d.HV + hv) * V + at % V)
                        : make_uint4(0, 0, 0, 0);
  }
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
  if (thread < kChunk) invert_diagonal_blocks(A, T, thread);
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    const int at = (thread + i * kThreads) * 8, r = at / V, c = at % V;
    const auto times_beta = [&](std::uint32_t pair) {
      return bf16_pair(beta[r] * low_bf16(pair), beta[r] * high_bf16(pair));
    };
    const uint4 v = values[i];
    simt::store8(bv, swizzled<V>(r, c),
                 make_uint4(times_beta(v.x), times_beta(v.y), times_beta(v.z), times_beta(v.w)));
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
        simt::load_matrix_x4_transposed(b, bv, (b_at<V>() + k * 16 * V) ^ column);
      else
        simt::load_matrix_x4_transposed(b, bk, (b_at<K>() + k * 16 * K) ^ column);
#pragma unroll
      for (int m = k; m < kSubChunks; ++m) {
        std::uint32_t t[4];
        simt::load_matrix_x4(t, inverse, (a_at<kChunk>(0) + m * 16 * kChunk) ^ (k * 16));
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
      simt::store8(static_cast<std::uint16_t*>(is_u ? a.out.u : a.out.w), to,
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
