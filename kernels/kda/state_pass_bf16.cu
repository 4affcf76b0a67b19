// The recurrence over chunks where all operands are bf16: what state_pass.cu computes, bit for bit,
// with the state in registers, operands in bf16 shared memory and the next chunk's under way. Eight
// warps carry the state; where there are outputs, eight more compute them beside.
#include "kernels/kda/bf16_tiles.cuh"
#include "kernels/kda/launch.h"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

constexpr int kWarps = 8, kColumns = 64, kStages = 2;
constexpr int threads_of(bool writes_o) { return (writes_o ? 2 : 1) * kWarps * 32; }

// Shared memory, in bf16 elements.
template <int K>
struct Layout {
  static constexpr int w = 0, kg = w + kChunk * K, qg = kg + kChunk * K;  // [64][K]
  static constexpr int aqk = qg + kChunk * K;                             // [64][64]
  static constexpr int u = aqk + kChunk * kChunk;                         // [64][kColumns]
  static constexpr int stage = u + kChunk * kColumns;
  static constexpr int h = kStages * stage;      // [K][kColumns]
  static constexpr int vnew = h + K * kColumns;  // [64][kColumns]
  static constexpr int elements = vnew + kChunk * kColumns;
};

template <int K, int V, bool writes_o>
__global__ void __launch_bounds__(threads_of(writes_o))
    state_pass_bf16_kernel(StatePassArgs a, Format output, Format handoff) {
  constexpr int kThreads = threads_of(writes_o);
  using L = Layout<K>;
  constexpr int kStateRows = K / 16;                                 // tiles of 16 rows
  constexpr int kStateTiles = kStateRows * (kColumns / 8) / kWarps;  // tiles of S a warp
  const auto h = simt::dynamic_shared<std::uint16_t>(L::h * 2, K * kColumns);
  const auto vnew = simt::dynamic_shared<std::uint16_t>(L::vnew * 2, kChunk * kColumns);
  const auto part = [](int stage, int at, int count) {
    return simt::dynamic_shared<std::uint16_t>((stage * L::stage + at) * 2, count);
  };

  const KdaDims& d = a.dims;
  const int warp = threadIdx.x / 32 % kWarps, hv = blockIdx.y, first_column = blockIdx.x * kColumns;
  const Lane l;
  const std::int64_t sequence = blockIdx.z, state_at = (sequence * d.HV + hv) * K;
  const std::int64_t first_chunk = a.packing.first_chunk(sequence);
  const std::int64_t last_chunk = a.packing.end_chunk(d, sequence);
  const bool carries = threadIdx.x / 32 < kWarps;  // this warp's part: the state, or o

  const auto fetch = [&](std::int64_t chunk, int stage) {
    const std::int64_t slot = chunk * d.HV + hv;
    const auto rows = [&](int to, const void* from, auto columns, int pitch, int first) {
      constexpr int kWide = decltype(columns)::value;
      copy_tile_async<kChunk, kWide, kThreads>(
          part(stage, to, kChunk * kWide),
          static_cast<const std::uint16_t*>(from) + slot * kChunk * pitch + first, pitch);
    };
    constexpr std::integral_constant<int, K> key{};
    constexpr std::integral_constant<int, kChunk> square{};
    rows(L::w, a.chunk.w, key, K, 0);
    rows(L::u, a.chunk.u, square, V, first_column);
    if (writes_o) {
      rows(L::qg, a.chunk.qg, key, K, 0);
      rows(L::aqk, a.chunk.aqk, square, kChunk, 0);
    }
    rows(L::kg, a.chunk.kg, key, K, 0);
    simt::commit_copies();
  };

  // This warp's tiles of S: 16 rows, kStateTiles times 8 columns.
  const int state_row = warp % kStateRows * 16, state_column = warp / kStateRows * kStateTiles * 8;
  const int h_to = swizzled<kColumns>(state_row + l.row, state_column + 2 * l.pair);
  const int kg_at = a_transposed_at<K>(state_row);
  float S[kStateTiles][4];
  const auto keep_h = [&] {
#pragma unroll
    for (int t = 0; t < kStateTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        simt::store_pair(h, (h_to + 8 * half * kColumns) ^ 8 * t,
                         bf16_pair(S[t][2 * half], S[t][2 * half + 1]));
  };
#pragma unroll
  for (int t = 0; t < kStateTiles; ++t)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const std::int64_t k = state_at + state_row + l.row + e / 2 * 8;
      const int c = first_column + state_column + 8 * t + 2 * l.pair + e % 2;
      S[t][e] = a.state0 ? a.state0[k * V + c] : 0.0f;
    }
  if (carries) keep_h();
  if (first_chunk < last_chunk) fetch(first_chunk, 0);

  const int row = warp % 4 * 16, column = warp / 4 * 32;  // this warp's part of v_new and o
  const int left_at = a_at<K>(row), aqk_at = a_at<kChunk>(row), right_at = b_at<kColumns>(),
            vnew_to = swizzled<kColumns>(row + l.row, column + 2 * l.pair);
  for (std::int64_t chunk = first_chunk; chunk < last_chunk; ++chunk) {
    const int stage = static_cast<int>((chunk - first_chunk) % kStages);
    const std::int64_t slot = chunk * d.HV + hv;
    const auto w = part(stage, L::w, kChunk * K), kg = part(stage, L::kg, kChunk * K),
               qg = part(stage, L::qg, kChunk * K), aqk = part(stage, L::aqk, kChunk * kChunk),
               u = part(stage, L::u, kChunk * kColumns);
    float gamma[2];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      gamma[half] = a.chunk.gamma[slot * K + state_row + l.row + 8 * half];
    simt::wait_for_copies<0>();
    __syncthreads();
    if (chunk + 1 < last_chunk) fetch(chunk + 1, (stage + 1) % kStages);

    // W h for v_new = U - W h, or Qg h for o.
    const auto left = carries ? w : qg;
    float sum[4][4] = {};
    std::uint32_t x[2][4], b[2][2][4];  // fragments of this step and of the next
    const auto load_step = [&](int k) {
      const int at = k / 16 % 2;
      simt::load_matrix_x4(x[at], left, left_at ^ k);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        simt::load_matrix_x4_transposed(b[at][i], h, (right_at + k * kColumns) ^ (column + 16 * i));
    };
    load_step(0);
#pragma unroll
    for (int k = 0; k < K; k += 16) {
      if (k + 16 < K) load_step(k + 16);
      const int at = k / 16 % 2;
#pragma unroll
      for (int t = 0; t < 4; ++t)
        mma_m16n8k16_bf16(sum[t], x[at], b[at][t / 2] + t % 2 * 2, sum[t]);
    }
    if (carries) {
#pragma unroll
      for (int t = 0; t < 4; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int at = (vnew_to + 8 * half * kColumns) ^ 8 * t;
          const std::uint32_t pair = simt::load_pair(u, at);
          simt::store_pair(
              vnew, at,
              bf16_pair(low_bf16(pair) - sum[t][2 * half], high_bf16(pair) - sum[t][2 * half + 1]));
        }
    }
    __syncthreads();

    if (carries) {
      // S = gamma S + Kg^T v_new, the running state outside the tensor core.
      float product[kStateTiles][4] = {};
      std::uint32_t ak[2][4], v[2][kStateTiles / 2][4];
      const auto load_step = [&](int k) {
        const int at = k / 16 % 2;
        simt::load_matrix_x4_transposed(ak[at], kg, kg_at + k * K);
#pragma unroll
        for (int t = 0; t < kStateTiles; t += 2)
          simt::load_matrix_x4_transposed(v[at][t / 2], vnew,
                                          (right_at + k * kColumns) ^ (state_column + 8 * t));
      };
      load_step(0);
#pragma unroll
      for (int k = 0; k < kChunk; k += 16) {
        if (k + 16 < kChunk) load_step(k + 16);
        const int at = k / 16 % 2;
#pragma unroll
        for (int t = 0; t < kStateTiles; ++t)
          mma_m16n8k16_bf16(product[t], ak[at], v[at][t / 2] + t % 2 * 2, product[t]);
      }
#pragma unroll
      for (int t = 0; t < kStateTiles; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e) S[t][e] = fmaf(gamma[e / 2], S[t][e], product[t][e]);
      keep_h();
    } else {
      // o += Aqk v_new
      const std::int64_t begin = a.packing.first_token(chunk);
      const std::int64_t end = a.packing.end_token(d, chunk);
      for (int k = 0; k < row + 16; k += 16) {
        std::uint32_t aa[4], b[2][4];
        simt::load_matrix_x4(aa, aqk, aqk_at ^ k);
#pragma unroll
        for (int i = 0; i < 2; ++i)
          simt::load_matrix_x4_transposed(b[i], vnew,
                                          (right_at + k * kColumns) ^ (column + 16 * i));
#pragma unroll
        for (int t = 0; t < 4; ++t) mma_m16n8k16_bf16(sum[t], aa, b[t / 2] + t % 2 * 2, sum[t]);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t token = begin + row + l.row + 8 * half;
        if (token >= end) continue;
        const std::int64_t first = (token * d.HV + hv) * V + first_column + column + 2 * l.pair;
#pragma unroll
        for (int t = 0; t < 4; ++t) {
          const float pair[2] = {sum[t][2 * half], sum[t][2 * half + 1]};
          if (a.o) store_elements<2>(a.o, first + 8 * t, Format::ieee, pair);
          if (output == Format::bf16)
            simt::store_pair(static_cast<std::uint16_t*>(a.o_cast), first + 8 * t,
                             bf16_pair(pair[0], pair[1]));
          else
            store_elements<2>(a.o_cast, first + 8 * t, output, pair);
        }
      }
    }
  }
  if (!carries) return;
#pragma unroll
  for (int t = 0; t < kStateTiles; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t k = state_at + state_row + l.row + 8 * half;
      const float pair[2] = {S[t][2 * half], S[t][2 * half + 1]};
      store_elements<2>(a.state, k * V + first_column + state_column + 8 * t + 2 * l.pair,
                        a.hand_off ? handoff : Format::ieee, pair);
    }
}

}  // namespace

bool state_pass_in_bf16(const Plan& plan) {
  for (Site s :
       {Site::w_store, Site::u_store, Site::kg_store, Site::qg_store, Site::aqk_store,
        Site::h_store, Site::vnew_store, Site::ws_dot, Site::qs_dot, Site::av_dot, Site::kv_dot})
    if (plan[s] != Format::bf16) return false;
  return plan[Site::state] == Format::ieee;
}

void launch_state_pass_bf16(const StatePassArgs& a, const Plan& plan, simt::Stream stream) {
  const auto launch = [&](auto k, auto v, auto outputs) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    constexpr bool writes_o = decltype(outputs)::value;
    simt::launch("kda.state_pass_bf16",
                 dim3(V / kColumns, static_cast<unsigned>(a.dims.HV),
                      static_cast<unsigned>(a.packing.sequences)),
                 dim3(threads_of(writes_o)), Layout<K>::elements * sizeof(std::uint16_t), stream,
                 state_pass_bf16_kernel<K, V, writes_o>, a,
                 output_format(plan[Site::output], a.dims.in), plan[Site::handoff]);
  };
  with_shape(a.dims.K, a.dims.V, [&](auto k, auto v) {
    if (a.o_cast)
      launch(k, v, std::true_type{});
    else
      launch(k, v, std::false_type{});
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
