// The recurrence over chunks where all operands are bf16: what state_pass.cu computes, bit for bit,
// with the state in registers, operands in bf16 shared memory and the next chunk's under way.
#include "kernels/kda/bf16_tiles.cuh"
#include "kernels/kda/launch.h"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kColumns = 64, kStages = 2;

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

template <int K, int V>
__global__ void __launch_bounds__(kThreads)
    state_pass_bf16_kernel(StatePassArgs a, Format output, Format handoff) {
  using L = Layout<K>;
  constexpr int kStateRows = K / 16;                                 // tiles of 16 rows
  constexpr int kStateTiles = kStateRows * (kColumns / 8) / kWarps;  // tiles of S a warp
  const auto h = simt::dynamic_shared<std::uint16_t>(L::h * 2, K * kColumns);
  const auto vnew = simt::dynamic_shared<std::uint16_t>(L::vnew * 2, kChunk * kColumns);
  const auto part = [](int stage, int at, int count) {
    return simt::dynamic_shared<std::uint16_t>((stage * L::stage + at) * 2, count);
  };

  const KdaDims& d = a.dims;
  const int warp = threadIdx.x / 32, hv = blockIdx.y, first_column = blockIdx.x * kColumns;
  const Lane l;
  const std::int64_t sequence = blockIdx.z, state_at = (sequence * d.HV + hv) * K;
  const std::int64_t first_chunk = a.packing.begin ? a.packing.first[sequence] : 0;
  const std::int64_t last_chunk = a.packing.begin ? a.packing.first[sequence + 1] : d.chunks();
  const bool writes_o = a.o || a.o_cast;

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
  float S[kStateTiles][4];
  const auto keep_h = [&] {
#pragma unroll
    for (int t = 0; t < kStateTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        simt::store_pair(
            h, swizzled<kColumns>(state_row + l.row + 8 * half, state_column + 8 * t + 2 * l.pair),
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
  keep_h();
  if (first_chunk < last_chunk) fetch(first_chunk, 0);

  const int row = warp % 4 * 16, column = warp / 4 * 32;  // this warp's part of v_new and o
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

    // v_new = U - W h; o = Qg h
    float read[4][4] = {}, o[4][4] = {};
#pragma unroll
    for (int k = 0; k < K; k += 16) {
      std::uint32_t aw[4], aq[4], b[2][4];
      load_a<K>(aw, w, row, k);
      if (writes_o) load_a<K>(aq, qg, row, k);
      load_b<kColumns>(b[0], h, k, column);
      load_b<kColumns>(b[1], h, k, column + 16);
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        mma_m16n8k16_bf16(read[t], aw, b[t / 2] + t % 2 * 2, read[t]);
        if (writes_o) mma_m16n8k16_bf16(o[t], aq, b[t / 2] + t % 2 * 2, o[t]);
      }
    }
#pragma unroll
    for (int t = 0; t < 4; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = swizzled<kColumns>(row + l.row + 8 * half, column + 8 * t + 2 * l.pair);
        const std::uint32_t pair = simt::load_pair(u, at);
        simt::store_pair(
            vnew, at,
            bf16_pair(low_bf16(pair) - read[t][2 * half], high_bf16(pair) - read[t][2 * half + 1]));
      }
    __syncthreads();

    // o += Aqk v_new
    if (writes_o) {
      const std::int64_t begin = a.packing.begin ? a.packing.begin[chunk] : chunk * kChunk;
      const std::int64_t end = a.packing.begin ? a.packing.end[chunk] : d.T;
      for (int k = 0; k < row + 16; k += 16) {
        std::uint32_t aa[4], b[2][4];
        load_a<kChunk>(aa, aqk, row, k);
        load_b<kColumns>(b[0], vnew, k, column);
        load_b<kColumns>(b[1], vnew, k, column + 16);
#pragma unroll
        for (int t = 0; t < 4; ++t) mma_m16n8k16_bf16(o[t], aa, b[t / 2] + t % 2 * 2, o[t]);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t t0 = begin + row + l.row + 8 * half;
        if (t0 >= end) continue;
#pragma unroll
        for (int t = 0; t < 4; ++t) {
          const std::int64_t at = (t0 * d.HV + hv) * V + first_column + column + 8 * t + 2 * l.pair;
          const float pair[2] = {o[t][2 * half], o[t][2 * half + 1]};
          if (a.o) store_elements<2>(a.o, at, Format::ieee, pair);
          if (a.o_cast) store_elements<2>(a.o_cast, at, output, pair);
        }
      }
    }
    // S = gamma S + Kg^T v_new, the running state outside the tensor core.
    float sum[kStateTiles][4] = {};
#pragma unroll
    for (int k = 0; k < kChunk; k += 16) {
      std::uint32_t ak[4];
      load_a_transposed<K>(ak, kg, state_row, k);
#pragma unroll
      for (int t = 0; t < kStateTiles; t += 2) {
        std::uint32_t b[4];
        load_b<kColumns>(b, vnew, k, state_column + 8 * t);
        mma_m16n8k16_bf16(sum[t], ak, b, sum[t]);
        mma_m16n8k16_bf16(sum[t + 1], ak, b + 2, sum[t + 1]);
      }
    }
#pragma unroll
    for (int t = 0; t < kStateTiles; ++t)
#pragma unroll
      for (int e = 0; e < 4; ++e) S[t][e] = fmaf(gamma[e / 2], S[t][e], sum[t][e]);
    keep_h();
  }
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
  with_shape(a.dims.K, a.dims.V, [&](auto k, auto v) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    simt::launch("kda.state_pass_bf16",
                 dim3(V / kColumns, static_cast<unsigned>(a.dims.HV),
                      static_cast<unsigned>(a.packing.sequences)),
                 dim3(kThreads), Layout<K>::elements * sizeof(std::uint16_t), stream,
                 state_pass_bf16_kernel<K, V>, a, output_format(plan[Site::output], a.dims.in),
                 plan[Site::handoff]);
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
