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

struct Two {
  float x[2];
};
__device__ __forceinline__ Two two_of(std::uint32_t pair) {
  return {{low_bf16(pair), high_bf16(pair)}};
}
__device__ __forceinline__ Two load_two(simt::Shared<const float> from, int index) {
  const float2 v = simt::load2(from, index);
  return {{v.x, v.y}};
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
  const std::int64_t begin = a.packing.first_token(chunk);
  const std::int64_t end = a.packing.end_token(d, chunk);
  const int tokens = end - begin < kChunk ? static_cast<int>(end - begin) : kChunk;

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
  const auto from = [&](const void* p, int heads, int head, int width) {
    return static_cast<const std::uint16_t*>(p) + (begin * heads + head) * width;
  };
  const auto* k_in = from(a.in.k, d.H, h, K);
  const auto* q_in = from(a.in.q, d.H, h, K);
  const auto* gate_in = from(a.in.gate, d.HV, hv, K) + gate_channel;
  const int key_pitch = d.H * K, gate_pitch = d.HV * K;
  // Rows beyond the segment are zero; their loads go to its first row.
  const auto inside = [&](int r) { return r < tokens ? r : 0; };
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int r = warp + i * kWarps, at = inside(r) * key_pitch + lane * N;
#pragma unroll
    for (int n = 0; n < N / 2; ++n) {
      norm_rows[i][n] = simt::load_pair(k_in, at + 2 * n);
      norm_rows[i][N / 2 + n] = simt::load_pair(q_in, at + 2 * n);
    }
  }
#pragma unroll
  for (int r = 0; r < kSubChunk; ++r) {
    const int at = inside(gate_block * kSubChunk + r) * gate_pitch;
    if constexpr (kChannels == 2)
      gates[r] = simt::load_pair(gate_in, at);
    else
      gates[r] = gate_in[at];
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
      const int r = row + 8 * i, at = inside(r) * key_pitch + channel(s);
      key_in[s][i] = simt::load_four(k_in, at), query_in[s][i] = simt::load_four(q_in, at);
      if (r >= tokens) key_in[s][i] = query_in[s][i] = make_uint2(0, 0);
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
        const float g = log_decay_of(true, raw, rate, bias[i]);
        sum[i] += token < tokens ? g * kLog2e : 0.0f;
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
    beta[thread] = thread < tokens ? elementary::sigmoid(load_element(
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

  auto* kg_out = static_cast<std::uint16_t*>(a.out.kg) + slot * kChunk * K;
  auto* qg_out = static_cast<std::uint16_t*>(a.out.qg) + slot * kChunk * K;
  float key[kSteps][2][4], query[kSteps][2][4];  // decayed since the start of the sub-chunk
  float diagonal_kk[2][4] = {}, diagonal_qk[2][4] = {};
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int c = channel(s);
    std::uint32_t b[2][2];  // the diagonal block's right side
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = row + 8 * i;
      std::uint32_t kg[2], qg[2], kb[2], kr[2];
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {  // two channels at a time
        const int at = c + 2 * pair;
        const Two in = load_two(cross, (enter + block) * K + at),
                  out = load_two(cross, (leave + block) * K + at),
                  inverse = load_two(cross, (invert + block) * K + at),
                  sum = load_two(total, block * K + at),
                  log = load_two(log_decay, r * L::kKey + at),
                  k = two_of(pair == 0 ? key_in[s][i].x : key_in[s][i].y),
                  q = two_of(pair == 0 ? query_in[s][i].x : query_in[s][i].y);
        Two to_end, since_start, read, right_side, diagonal;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float khat = k.x[e] * norm_k[r], qhat = q.x[e] * norm_q[r];
          const float enters = elementary::exp2_flushed(log.x[e]),
                      leaves = elementary::exp2_flushed(sum.x[e] - log.x[e]);
          const float enters_all = enters * in.x[e];
          right_side.x[e] = khat * leaves;
          diagonal.x[e] = right_side.x[e] * inverse.x[e];
          to_end.x[e] = khat * (leaves * out.x[e]);
          since_start.x[e] = qhat * enters_all;
          read.x[e] = beta[r] * khat * enters_all;
          key[s][i][2 * pair + e] = khat * enters;
          query[s][i][2 * pair + e] = qhat * enters;
        }
        kg[pair] = bf16_pair(to_end.x[0], to_end.x[1]);
        qg[pair] = bf16_pair(since_start.x[0], since_start.x[1]);
        kb[pair] = bf16_pair(read.x[0], read.x[1]);
        kr[pair] = bf16_pair(right_side.x[0], right_side.x[1]);
        b[i][pair] = bf16_pair(diagonal.x[0], diagonal.x[1]);
      }
      simt::store_four(kg_out, r * K + c, make_uint2(kg[0], kg[1]));
      simt::store_four(qg_out, r * K + c, make_uint2(qg[0], qg[1]));
      simt::store_four(bk, swizzled<K>(r, c), make_uint2(kb[0], kb[1]));
      simt::store_four(right, fragment_at<K>(r, c), make_uint2(kr[0], kr[1]));
      __syncwarp();  // keeps the loads of later rows, and their registers, where they are
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
      std::uint32_t ak[4], aq[4];
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const int e = 2 * pair;
        Two scale{{1, 1}};
        if (block - J > 1)
          scale = load_two(cross, (between + (block - J == 3 ? 2 : J)) * K + c + e);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const auto scaled = [&](const float(&x)[4]) {
            return bf16_pair(x[e] * scale.x[0], x[e + 1] * scale.x[1]);
          };
          ak[e + i] = scaled(key[s][i]), aq[e + i] = scaled(query[s][i]);
        }
      }
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const uint2 pair = simt::load_four(right, fragment_at<K>(J * kSubChunk + 8 * n + l.row, c));
        const std::uint32_t b[2] = {pair.x, pair.y};
        mma_m16n8k16_bf16(sum_kk[n], ak, b, sum_kk[n]);
        mma_m16n8k16_bf16(sum_qk[n], aq, b, sum_qk[n]);
      }
      __syncwarp();
    }
    keep(kk, J, sum_kk);
    keep(qk, J, sum_qk);
  }
  __syncthreads();

  // v is under way meanwhile.
  constexpr int kValues = kChunk * V / 8 / kThreads;
  uint4 values[kValues];
  const auto* v_in = from(a.in.v, d.HV, hv, V);
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    const int at = (thread + i * kThreads) * 8;
    values[i] = simt::load8(v_in, inside(at / V) * d.HV * V + at % V);
    if (at / V >= tokens) values[i] = make_uint4(0, 0, 0, 0);
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
    const std::int64_t chunks = a.packing.chunk_count(a.dims);
    simt::launch("kda.prepare_bf16",
                 dim3(static_cast<unsigned>(chunks), static_cast<unsigned>(a.dims.HV)),
                 dim3(kThreads), Layout<K, V>::bytes, stream, prepare_bf16_kernel<K, V>, a);
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
