// Chunk operands where everything kept or multiplied is bf16 and the gate is bounded: what
// prepare.cu computes, bit for bit. One block a chunk and value head.
#include "kernels/kda/prepare_bf16.cuh"

#include "kernels/kda/launch.h"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

using namespace prepare_bf16;

template <int K, int V>
__global__ void __launch_bounds__(kThreads, 2) prepare_bf16_kernel(PrepareArgs a) {
  using L = Layout<K, V>;
  const auto log_decay = simt::dynamic_shared<float>(L::log_decay, kChunk * K);
  const auto left = simt::dynamic_shared<std::uint32_t>(L::log_decay, kChunk * K);
  const auto bk = simt::dynamic_shared<std::uint16_t>(L::bk, kChunk * K);
  const auto right = simt::dynamic_shared<std::uint16_t>(L::right, kRightRows * K);
  const auto diagonal = simt::dynamic_shared<std::uint16_t>(L::diagonal, kChunk * K);
  const auto scaled = simt::dynamic_shared<std::uint32_t>(L::scaled, kScaled * kSubChunk * K);
  const auto total = simt::dynamic_shared<float>(L::total, kSubChunks * K);
  const auto cross = simt::dynamic_shared<float>(L::cross, kCross * K);
  const auto beta = simt::dynamic_shared<float>(L::beta, kChunk);
  const auto norms = simt::dynamic_shared<float>(L::norms, 2 * kChunk);
  const auto parts = simt::dynamic_shared<float>(L::parts, 2 * kChunk * kPartsPitch);

  const KdaDims& d = a.dims;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, h = blockIdx.y,
            hv = h * gridDim.x + blockIdx.x;
  const Lane l;
  const std::int64_t chunk = blockIdx.z, slot = chunk * d.HV + hv;  // [chunks, HV]
  const std::int64_t begin = a.packing.first_token(chunk);
  const std::int64_t end = a.packing.end_token(d, chunk);
  const int tokens = end - begin < kChunk ? static_cast<int>(end - begin) : kChunk;
  const auto from = [&](const void* p, int heads, int head, int width) {
    return static_cast<const std::uint16_t*>(p) + (begin * heads + head) * width;
  };
  // Rows beyond the segment are zero; their loads go to its first row.
  const auto inside = [&](int r) { return r < tokens ? r : 0; };

  // A thread has the 16 tokens of its channels' gates in a sub-chunk.
  constexpr int kChannels = kSubChunks * K > kThreads ? kSubChunks * K / kThreads : 1;
  const bool has_gates = thread < kSubChunks * K / kChannels;
  const int gate_block = thread / (K / kChannels),
            gate_channel = thread % (K / kChannels) * kChannels,
            gate_tokens = tokens - gate_block * kSubChunk;
  std::uint32_t gates[kSubChunk];
  float log_rate = 0, bias[kChannels] = {}, beta_in = 0;
  if (has_gates) {
    log_rate = a.in.A_log[hv];
#pragma unroll
    for (int i = 0; i < kChannels; ++i) bias[i] = a.in.dt_bias[hv * K + gate_channel + i];
    const auto* gate = from(a.in.gate, d.HV, hv, K) + gate_channel;
#pragma unroll
    for (int r = 0; r < kSubChunk; ++r) {
      const int at = (r < gate_tokens ? gate_block * kSubChunk + r : 0) * (d.HV * K);
      if constexpr (kChannels == 2)
        gates[r] = simt::load_pair(gate, at);
      else
        gates[r] = gate[at];
    }
  }
  if (thread < tokens) beta_in = load_element(a.in.beta, (begin + thread) * d.HV + hv, Dtype::bf16);

  // This lane's part of k and q: tokens `row` and `row` + 8 of the warp's sub-chunk, of channels in
  // steps of 16 those from 4 l.pair on; its warp has kSteps steps.
  constexpr int kSteps = K / 16 / kShares;
  const int block = warp / kShares, row = block * kSubChunk + l.row,
            first_step = warp % kShares * kSteps;
  const auto channel = [&](int step) { return (first_step + step) * 16 + 4 * l.pair; };
  uint2 key_in[kSteps][2], query_in[kSteps][2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = row + 8 * i, at = inside(r) * d.H * K + channel(0);
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      key_in[s][i] = simt::load_four(from(a.in.k, d.H, h, K), at + 16 * s);
      query_in[s][i] = simt::load_four(from(a.in.q, d.H, h, K), at + 16 * s);
      if (r >= tokens) key_in[s][i] = query_in[s][i] = make_uint2(0, 0);
    }
  }
  // Squares, in the parts that sum_of_squares has: K / 32 channels each.
  const auto square = [&](int r, int s, uint2 four) {
    constexpr int kPart = K / 32;
    const Four x = four_of(four);
    float sums[4 / kPart] = {};
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[e / kPart] = fmaf(x.x[e], x.x[e], sums[e / kPart]);
#pragma unroll
    for (int e = 0; e < 4 / kPart; ++e) parts[r * kPartsPitch + channel(s) / kPart + e] = sums[e];
  };
#pragma unroll
  for (int s = 0; s < kSteps; ++s)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      square(row + 8 * i, s, key_in[s][i]);
      square(kChunk + row + 8 * i, s, query_in[s][i]);
    }
  if (thread < kChunk) beta[thread] = thread < tokens ? elementary::sigmoid(beta_in) : 0.0f;
  // Log decays from the start of each sub-chunk.
  if (has_gates) {
    const int b = gate_block, c = gate_channel;
    const float rate = elementary::exp_without_call(log_rate);
    float sum[kChannels] = {};
    const auto put = [&](int r) {
      const int at = left_at<K>(b * kSubChunk + r, c / 16, c / 4 % 4) + c % 4;
      if constexpr (kChannels == 2)
        simt::store2(log_decay, at, make_float2(sum[0], sum[1]));
      else
        log_decay[at] = sum[0];
    };
#pragma unroll
    for (int r = 0; r < kSubChunk; ++r) {
#pragma unroll
      for (int i = 0; i < kChannels; ++i) {
        const float raw = i == 0 ? low_bf16(gates[r]) : high_bf16(gates[r]);
        sum[i] += log_decay_of(true, raw, rate, bias[i]) * kLog2e;
      }
      put(r);
    }
    if (gate_tokens < kSubChunk) {  // tokens beyond decay nothing
#pragma unroll
      for (int i = 0; i < kChannels; ++i) sum[i] = 0;
      for (int r = 0; r < kSubChunk; ++r) {
        if (r < gate_tokens)
#pragma unroll
          for (int i = 0; i < kChannels; ++i)
            sum[i] = log_decay[left_at<K>(b * kSubChunk + r, c / 16, c / 4 % 4) + c % 4 + i];
        else
          put(r);
      }
    }
#pragma unroll
    for (int i = 0; i < kChannels; ++i) total[b * K + c + i] = sum[i];
  }
  __syncthreads();
  decays_across<K>(total, cross, a.out.gamma + slot * K);
  if (thread >= kThreads - 2 * kChunk) {
    const int r = thread - (kThreads - 2 * kChunk);  // of k, then of q
    norms[r] = inverse_norm(sum_of_parts(parts, r)) * (r < kChunk ? 1.0f : query_scale<K>());
  }
  __syncthreads();

  auto* kg_out = static_cast<std::uint16_t*>(a.out.kg) + slot * kChunk * K;
  auto* qg_out = static_cast<std::uint16_t*>(a.out.qg) + slot * kChunk * K;
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int c = channel(s), step = first_step + s;
    const auto table = [&](int entry) { return load_four_of(cross, entry * K + c); };
    Four key[2], query[2];  // decayed since the start of the sub-chunk
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = row + 8 * i;
      const int to = r * K + c;
      const Four log = load_four_of(log_decay, left_at<K>(r, step, l.pair)),
                 khat = norms[r] * four_of(key_in[s][i]);
      {
        const Four sum = load_four_of(total, block * K + c),
                   leaves = exp2_flushed({{sum.x[0] - log.x[0], sum.x[1] - log.x[1],
                                           sum.x[2] - log.x[2], sum.x[3] - log.x[3]}}),
                   until = khat * leaves;
        simt::store_four(kg_out, to, bf16_four(khat * (leaves * table(leave + block))));
        const int place = right_at<K>(r, step, l.pair);
        if (block < kSubChunks - 1) simt::store_four(right, place, bf16_four(until));
        simt::store_four(diagonal, place, bf16_four(until * table(invert + block)));
      }
      const Four enters = exp2_flushed(log), enters_all = enters * table(enter + block),
                 qhat = norms[kChunk + r] * four_of(query_in[s][i]);
      simt::store_four(qg_out, to, bf16_four(qhat * enters_all));
      simt::store_four(bk, swizzled<K>(r, c), bf16_four((beta[r] * khat) * enters_all));
      key[i] = khat * enters, query[i] = qhat * enters;
    }
    __syncwarp();
    const auto keep = [&](simt::Shared<std::uint32_t> to, int at, const Four(&x)[2],
                          const Four& scale) {
      const uint2 low = bf16_four(x[0] * scale), high = bf16_four(x[1] * scale);
      simt::store4(to, at, make_uint4(low.x, high.x, low.y, high.y));
    };
    constexpr Four kOne{{1, 1, 1, 1}};
    const int at = left_at<K>(row, step, l.pair);
    keep(left, at, key, kOne), keep(left, at + 8 * K, query, kOne);
#pragma unroll
    for (int n = 0; n < kScaled; ++n)
      if (block == (n == 0 ? 2 : 3)) {
        const int at = left_at<K>(n * kSubChunk + l.row, step, l.pair);
        keep(scaled, at, key, table(between + n)),
            keep(scaled, at + 8 * K, query, table(between + n));
      }
  }
  __syncthreads();

  // v is on its way meanwhile.
  constexpr int kValues = kChunk * V / 8 / kThreads;
  uint4 values[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    const int at = (thread + i * kThreads) * 8;
    values[i] = simt::load8(from(a.in.v, d.HV, hv, V), inside(at / V) * d.HV * V + at % V);
  }
  // k k^T and q k^T by blocks of 16 x 8; Aqk = q k^T up to the diagonal.
  constexpr int kJobs = 2 * kLowerBlocks, kRounds = (kJobs + kWarps - 1) / kWarps;
  float kk[kRounds][4];
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int job = warp + round * kWarps;
    if (job >= kJobs) continue;
    const LowerBlock at(job / 2);
    const int n = job % 2 * 8, first = at.J * kSubChunk + n;
    const Products sum =
        at.I - at.J <= 1
            ? products<K>(left, at.I * kSubChunk, at.I == at.J ? diagonal : right, first)
            : products<K>(scaled, (at.I == 2 ? 0 : 2 - at.J) * kSubChunk, right, first);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = at.I * kSubChunk + l.row + 8 * i, c = first + 2 * l.pair;
      const auto upto = [&](int e) { return c + e <= r ? sum.qk[2 * i + e] : 0.0f; };
      simt::store_pair(static_cast<std::uint16_t*>(a.out.aqk), (slot * kChunk + r) * kChunk + c,
                       bf16_pair(upto(0), upto(1)));
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) kk[round][e] = sum.kk[e];
  }
  __syncthreads();

  // A = beta k k^T below the diagonal, in place of the right sides.
  const auto A = simt::dynamic_shared<float>(L::A, kMatrix);
  const auto T = simt::dynamic_shared<float>(L::T, kMatrix);
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int job = warp + round * kWarps;
    if (job >= kJobs) continue;
    const LowerBlock at(job / 2);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = at.I * kSubChunk + l.row + 8 * i,
                c = at.J * kSubChunk + job % 2 * 8 + 2 * l.pair;
      const auto below = [&](int e) { return c + e < r ? beta[r] * kk[round][2 * i + e] : 0.0f; };
      simt::store2(A, r * kSquare + c, make_float2(below(0), below(1)));
    }
  }
  const auto bv = simt::dynamic_shared<std::uint16_t>(L::log_decay, kChunk * V);
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    const int at = (thread + i * kThreads) * 8, r = at / V, c = at % V;
    const auto times_beta = [&](std::uint32_t pair) {
      return bf16_pair(beta[r] * low_bf16(pair), beta[r] * high_bf16(pair));
    };
    const uint4 v = r < tokens ? values[i] : make_uint4(0, 0, 0, 0);
    simt::store8(bv, swizzled<V>(r, c),
                 make_uint4(times_beta(v.x), times_beta(v.y), times_beta(v.z), times_beta(v.w)));
  }
  __syncthreads();
  if (thread < kChunk) invert_diagonal_blocks(A, T, thread);
  __syncthreads();
  invert_lower_blocks<kWarps>(Format::ieee, A, T);

  const auto inverse = simt::dynamic_shared<std::uint16_t>(L::inverse, kChunk * kChunk);
  for (int job = thread; job < kLowerBlocks * kSubChunk * 2; job += kThreads) {
    const LowerBlock at(job / (kSubChunk * 2));
    const int r = at.I * kSubChunk + job / 2 % kSubChunk, c = at.J * kSubChunk + job % 2 * 8;
    const uint2 low = bf16_four(load_four_of(T, r * kSquare + c)),
                high = bf16_four(load_four_of(T, r * kSquare + c + 4));
    simt::store8(inverse, swizzled<kChunk>(r, c), make_uint4(low.x, low.y, high.x, high.y));
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
  constexpr std::int64_t kMostChunks = 65535;  // the grid's z
  return a.dims.in == Dtype::bf16 && a.dims.bounded_gate && !a.in.prepared &&
         a.packing.chunk_count(a.dims) <= kMostChunks;
}

void launch_prepare_bf16(const PrepareArgs& a, const Plan&, simt::Stream stream) {
  with_shape(a.dims.K, a.dims.V, [&](auto k, auto v) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    const std::int64_t chunks = a.packing.chunk_count(a.dims);
    simt::launch("kda.prepare_bf16",
                 dim3(static_cast<unsigned>(a.dims.HV / a.dims.H), static_cast<unsigned>(a.dims.H),
                      static_cast<unsigned>(chunks)),
                 dim3(kThreads), Layout<K, V>::bytes, stream, prepare_bf16_kernel<K, V>, a);
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
