// Chunk operands where everything kept or multiplied is bf16 and the gate is bounded: what
// prepare.cu computes, bit for bit. One block a chunk and value head.
#include "kernels/kda/prepare_bf16.cuh"

#include "kernels/kda/launch.h"
#include "kernels/simt/async_copy.h"

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
  const auto cross = simt::dynamic_shared<float>(L::cross, kIntervals * K);
  const auto beta = simt::dynamic_shared<float>(L::beta, kChunk);
  const auto norms = simt::dynamic_shared<float>(L::norms, 2 * kChunk);
  const auto parts = simt::dynamic_shared<float>(L::parts, 2 * kChunk * kPartsPitch);

  const KdaDims& d = a.dims;
  const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int h = blockIdx.y, hv = h * gridDim.x + blockIdx.x;
  const Lane l;
  const std::int64_t chunk = blockIdx.z, slot = chunk * d.HV + hv;  // [chunks, HV]
  const std::int64_t begin = a.packing.first_token(chunk);
  const std::int64_t end = a.packing.end_token(d, chunk);
  const unsigned tokens = end - begin < kChunk ? static_cast<unsigned>(end - begin) : kChunk;
  const auto from = [&](const void* p, int heads, int head, int width) {
    return static_cast<const std::uint16_t*>(p) + (begin * heads + head) * width;
  };
  // Rows beyond the segment are zero; their loads go to its last one.
  const auto inside = [&](unsigned r) { return r < tokens ? r : tokens - 1; };

  // A thread has the 16 tokens of its channels' gates in a sub-chunk.
  constexpr int kChannels = kSubChunks * K > kThreads ? kSubChunks * K / kThreads : 1;
  const bool has_gates = thread < kSubChunks * K / kChannels;
  const unsigned gate_row = thread / (K / kChannels) * kSubChunk,
                 gate_channel = thread % (K / kChannels) * kChannels;
  std::uint32_t gates[kSubChunk];
  float log_rate = 0, bias[kChannels] = {}, beta_in = 0;
  if (has_gates) {
    log_rate = a.in.A_log[hv];
#pragma unroll
    for (int i = 0; i < kChannels; ++i) bias[i] = a.in.dt_bias[hv * K + gate_channel + i];
    const auto* gate = from(a.in.gate, d.HV, hv, K) + gate_channel;
#pragma unroll
    for (unsigned r = 0; r < kSubChunk; ++r) {
      const auto* at = gate + std::int64_t{inside(gate_row + r)} * (d.HV * K);
      if constexpr (kChannels == 2)
        gates[r] = simt::load_pair(at, 0);
      else
        gates[r] = *at;
    }
  }
  if (thread < tokens) beta_in = load_element(a.in.beta, (begin + thread) * d.HV + hv, Dtype::bf16);

  // This lane's part of k and q: tokens `row` and `row` + 8 of the warp's sub-chunk, of channels in
  // steps of 16 those from 4 l.pair on; its warp has kSteps steps.
  constexpr int kSteps = K / 16 / kShares;
  const unsigned block = warp / kShares, row = block * kSubChunk + l.row,
                 first_step = warp % kShares * kSteps;
  const auto channel = [&](unsigned step) { return (first_step + step) * 16 + 4 * l.pair; };
  uint2 key_in[kSteps][2], query_in[kSteps][2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::int64_t at = std::int64_t{inside(row + 8 * i)} * (d.H * K) + channel(0);
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      key_in[s][i] = simt::load_four(from(a.in.k, d.H, h, K) + at, 16 * s);
      query_in[s][i] = simt::load_four(from(a.in.q, d.H, h, K) + at, 16 * s);
    }
  }
  if (tokens < kChunk)
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int s = 0; s < kSteps; ++s)
        if (row + 8 * i >= tokens) key_in[s][i] = query_in[s][i] = make_uint2(0, 0);
  // Squares, in the parts that sum_of_squares has: K / 32 channels each.
  const auto square = [&](unsigned r, unsigned s, uint2 four) {
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
    const unsigned c = gate_channel;
    const auto place = [&](unsigned r) { return left_at<K>(r, c / 16, c / 4 % 4) + c % 4; };
    const unsigned even = gate_row * K + place(0), odd = gate_row * K + place(1) - K;
    const float rate = elementary::exp_without_call(log_rate);
    float sum[kChannels] = {};
#pragma unroll
    for (unsigned r = 0; r < kSubChunk; ++r) {
#pragma unroll
      for (int i = 0; i < kChannels; ++i) {
        const float raw = i == 0 ? low_bf16(gates[r]) : high_bf16(gates[r]),
                    step = log_decay_of(true, raw, rate, bias[i]) * kLog2e;
        if (gate_row + r < tokens) sum[i] += step;
      }
      const unsigned at = (r % 2 ? odd : even) + r * K;
      if constexpr (kChannels == 2)
        simt::store2(log_decay, at, make_float2(sum[0], sum[1]));
      else
        log_decay[at] = sum[0];
    }
#pragma unroll
    for (int i = 0; i < kChannels; ++i) total[gate_row / kSubChunk * K + c + i] = sum[i];
  }
  __syncthreads();
  decays_across<K>(total, cross, a.out.gamma + slot * K);
  if (thread >= kThreads - 2 * kChunk) {
    const unsigned r = thread - (kThreads - 2 * kChunk);  // of k, then of q
    norms[r] = inverse_norm(sum_of_parts(parts, r)) * (r < kChunk ? 1.0f : query_scale<K>());
  }
  __syncthreads();

  // The left side of a product is decayed since the start of its sub-chunk, the right side is taken
  // back to the start of its own. What then lacks is the right one's sub-chunk, a factor of the
  // right side, and the sub-chunks between, a factor of the left.
  const unsigned to = row * K + channel(0);
  auto* kg_out = static_cast<std::uint16_t*>(a.out.kg) + slot * kChunk * K + to;
  auto* qg_out = static_cast<std::uint16_t*>(a.out.qg) + slot * kChunk * K + to;
  const float key_norm[2] = {norms[row], norms[row + 8]},
              query_norm[2] = {norms[kChunk + row], norms[kChunk + row + 8]};
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const unsigned c = channel(s), step = first_step + s;
    const auto table = [&](unsigned first, unsigned last) {
      return load_four_of(cross, across(first, last) * K + c);
    };
    const Four since = table(0, block), within = table(block, block + 1),
               until = table(block, kSubChunks);
    Four key[2], query[2];  // decayed since the start of the sub-chunk
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const unsigned r = row + 8 * i, next = i * 8 * K + s * 16;
      const Four enter = map<elementary::exp2_normal>(
                     load_four_of(log_decay, left_at<K>(r, step, l.pair))),
                 khat = key_norm[i] * four_of(key_in[s][i]),
                 undecayed = khat * map<elementary::reciprocal>(enter);
      const unsigned place = right_at<K>(r, step, l.pair);
      simt::store_four(diagonal, place, bf16_four(undecayed));
      if (block < kSubChunks - 1) simt::store_four(right, place, bf16_four(undecayed * within));
      simt::store_four(kg_out, next, bf16_four(undecayed * until));
      key[i] = khat * enter, query[i] = query_norm[i] * four_of(query_in[s][i]) * enter;
      simt::store_four(bk, swizzled<K>(r, c), bf16_four(key[i] * since));
      simt::store_four(qg_out, next, bf16_four(query[i] * since));
    }
    __syncwarp();
    const auto keep = [&](simt::Shared<std::uint32_t> left, unsigned at, const Four(&x)[2]) {
      const uint2 low = bf16_four(x[0]), high = bf16_four(x[1]);
      simt::store4(left, at, make_uint4(low.x, high.x, low.y, high.y));
    };
    const unsigned at = left_at<K>(row, step, l.pair);
    keep(left, at, key), keep(left, at + 8 * K, query);
#pragma unroll
    for (int n = 0; n < kScaled; ++n)
      if (block == (n == 0 ? 2 : 3)) {
        const Four between = table(n == 2 ? 2 : 1, n == 0 ? 2 : 3);
        const unsigned at = left_at<K>(n * kSubChunk + l.row, step, l.pair);
        keep(scaled, at, {key[0] * between, key[1] * between});
        keep(scaled, at + 8 * K, {query[0] * between, query[1] * between});
      }
  }
  __syncthreads();

  // k k^T and q k^T by blocks of 16 x 8; Aqk = q k^T up to the diagonal.
  constexpr int kJobs = 2 * kLowerBlocks, kRounds = (kJobs + kWarps - 1) / kWarps;
  float kk[kRounds][4];
  unsigned kk_row[kRounds], kk_column[kRounds];  // of this lane's first sum
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const unsigned job = warp + round * kWarps;
    if (job >= kJobs) continue;
    const LowerBlock at(job / 2);
    const unsigned first_row = at.I * kSubChunk, column = at.J * kSubChunk + job % 2 * 8;
    const Products sum =
        at.I - at.J <= 1
            ? products<K>(left, first_row, at.I == at.J ? diagonal : right, column)
            : products<K>(scaled, (at.I == 2 ? 0 : 1 + at.J) * kSubChunk, right, column);
    const unsigned first = first_row + l.row, c = column + 2 * l.pair;
    auto* aqk = static_cast<std::uint16_t*>(a.out.aqk) + (slot * kChunk + first) * kChunk + c;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const auto upto = [&](int e) { return c + e <= first + 8 * i ? sum.qk[2 * i + e] : 0.0f; };
      simt::store_pair(aqk, 8 * i * kChunk, bf16_pair(upto(0), upto(1)));
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) kk[round][e] = sum.kk[e];
    kk_row[round] = first, kk_column[round] = c;
  }
  __syncthreads();

  // v takes the place of the left sides; it has until the inverse is there to arrive.
  const auto v = simt::dynamic_shared<std::uint16_t>(L::log_decay, kChunk * V);
#pragma unroll
  for (unsigned i = thread * 8; i < kChunk * V; i += kThreads * 8)
    simt::copy16_or_zero_async(
        v, swizzled<V>(i / V, i % V),
        from(a.in.v, d.HV, hv, V) + std::int64_t{inside(i / V)} * (d.HV * V) + i % V,
        i / V < tokens);
  simt::commit_copies();
  // A = beta k k^T below the diagonal, in place of the right sides.
  const auto A = simt::dynamic_shared<float>(L::A, kMatrix);
  const auto T = simt::dynamic_shared<float>(L::T, kMatrix);
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    if (warp + round * kWarps >= kJobs) continue;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const unsigned r = kk_row[round] + 8 * i, c = kk_column[round];
      const float strength = beta[r];
      const auto below = [&](int e) { return c + e < r ? strength * kk[round][2 * i + e] : 0.0f; };
      simt::store2(A, r * kSquare + c, make_float2(below(0), below(1)));
    }
  }
  __syncthreads();
  if (thread < kChunk) invert_diagonal_blocks(A, T, thread);
  __syncthreads();
  invert_lower_blocks<kWarps>(Format::ieee, A, T);

  // T beta, of which both U and W are products.
  const auto inverse = simt::dynamic_shared<std::uint16_t>(L::inverse, kChunk * kChunk);
  for (unsigned job = thread; job < kLowerBlocks * kSubChunk * 2; job += kThreads) {
    const LowerBlock at(job / (kSubChunk * 2));
    const unsigned r = at.I * kSubChunk + job / 2 % kSubChunk, c = at.J * kSubChunk + job % 2 * 8;
    const auto scaled_by_beta = [&](unsigned c) {
      return bf16_four(load_four_of(T, r * kSquare + c) * load_four_of(beta, c));
    };
    const uint2 low = scaled_by_beta(c), high = scaled_by_beta(c + 4);
    simt::store8(inverse, swizzled<kChunk>(r, c), make_uint4(low.x, low.y, high.x, high.y));
  }
  simt::wait_for_copies<0>();
  __syncthreads();
  // U = T beta v and W = T beta (k decayed), 16 columns a warp at a time.
  const unsigned t_at = a_at<kChunk>(0);
  const auto multiply = [&](auto width, simt::Shared<std::uint16_t> tile, void* out) {
    constexpr int kWidth = decltype(width)::value;
    const unsigned b_lane = b_at<kWidth>(), sum_at = swizzled<kWidth>(l.row, 2 * l.pair),
                   row_at = swizzled<kWidth>(lane / 2, lane % 2 * 8);
    auto* to =
        static_cast<std::uint16_t*>(out) + (slot * kChunk + lane / 2) * kWidth + lane % 2 * 8;
    for (unsigned column = warp * 16; column < kWidth; column += kWarps * 16) {
      float sum[kSubChunks][2][4] = {};
#pragma unroll
      for (int k = 0; k < kSubChunks; ++k) {
        std::uint32_t b[4];
        simt::load_matrix_x4_transposed(b, tile, (b_lane ^ column) + k * 16 * kWidth);
#pragma unroll
        for (int m = k; m < kSubChunks; ++m) {
          std::uint32_t t[4];
          simt::load_matrix_x4(t, inverse, (t_at ^ (k * 16)) + m * 16 * kChunk);
          mma_m16n8k16_bf16(sum[m][0], t, b, sum[m][0]);
          mma_m16n8k16_bf16(sum[m][1], t, b + 2, sum[m][1]);
        }
      }
      __syncwarp();
      // The columns that only this warp read now hold the result, to be written 16 bytes at a time.
#pragma unroll
      for (int m = 0; m < kSubChunks; ++m)
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
          for (int i = 0; i < 2; ++i)
            simt::store_pair(tile, (sum_at ^ (column + 8 * n)) + (m * 16 + 8 * i) * kWidth,
                             bf16_pair(sum[m][n][2 * i], sum[m][n][2 * i + 1]));
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; ++i)
        simt::store8(to + column, i * 16 * kWidth,
                     simt::load8(tile, (row_at ^ column) + i * 16 * kWidth));
    }
  };
  multiply(std::integral_constant<int, V>{}, v, a.out.u);
  multiply(std::integral_constant<int, K>{}, bk, a.out.w);
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
