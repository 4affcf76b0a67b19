// The recurrence over chunks and the outputs: one block carries 32 columns of a head's state.
#include "kernels/kda/launch.h"
#include "kernels/kda/tile_dot.cuh"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32, kColumns = 32, kPitch = kColumns + 4;

template <int K>
struct Layout {
  static constexpr int kKey = K + 4;
  static constexpr int w = 0, kg = w + kChunk * kKey, qg = kg + kChunk * kKey;  // [64][kKey]
  static constexpr int aqk = qg + kChunk * kKey;                                // [64][kSquare]
  static constexpr int S = aqk + kChunk * kSquare;                              // [K][kPitch]
  static constexpr int vnew = S + K * kPitch;                                   // [64][kPitch]
  static constexpr int floats = vnew + kChunk * kPitch;
};

template <int K, int V, class P>
__global__ void __launch_bounds__(kThreads) state_pass_kernel(StatePassArgs a, P plan) {
  using L = Layout<K>;
  const auto w = simt::dynamic_shared<float>(L::w * 4, kChunk * L::kKey);
  const auto kg = simt::dynamic_shared<float>(L::kg * 4, kChunk * L::kKey);
  const auto qg = simt::dynamic_shared<float>(L::qg * 4, kChunk * L::kKey);
  const auto aqk = simt::dynamic_shared<float>(L::aqk * 4, kChunk * kSquare);
  const auto S = simt::dynamic_shared<float>(L::S * 4, K * kPitch);
  const auto vnew = simt::dynamic_shared<float>(L::vnew * 4, kChunk * kPitch);

  const KdaDims& d = a.dims;
  const int thread = threadIdx.x, warp = thread / 32, hv = blockIdx.y,
            first_column = blockIdx.x * kColumns;
  const std::int64_t sequence = blockIdx.z, state_at = (sequence * d.HV + hv) * K;
  const std::int64_t first_chunk = a.packing.first_chunk(sequence);
  const std::int64_t last_chunk = a.packing.end_chunk(d, sequence);
  const Lane l;
  const bool writes_o = a.o_cast != nullptr;
  const Format out = output_format(plan[Site::output], d.in);

  for (int at = thread; at < K * kColumns; at += kThreads) {
    const int k = at / kColumns, c = at % kColumns;
    S[k * kPitch + c] = a.state0 ? a.state0[(state_at + k) * V + first_column + c] : 0;
  }
  for (std::int64_t chunk = first_chunk; chunk < last_chunk; ++chunk) {
    const std::int64_t slot = chunk * d.HV + hv;
    const std::int64_t begin = a.packing.first_token(chunk);
    const std::int64_t end = a.packing.end_token(d, chunk);
    load_matrix<kChunk, K, kThreads>(w, L::kKey, a.chunk.w, slot * kChunk * K, plan[Site::w_store]);
    load_matrix<kChunk, K, kThreads>(kg, L::kKey, a.chunk.kg, slot * kChunk * K,
                                     plan[Site::kg_store]);
    if (writes_o) {
      load_matrix<kChunk, K, kThreads>(qg, L::kKey, a.chunk.qg, slot * kChunk * K,
                                       plan[Site::qg_store]);
      load_matrix<kChunk, kChunk, kThreads>(aqk, kSquare, a.chunk.aqk, slot * kChunk * kChunk,
                                            plan[Site::aqk_store]);
    }
    __syncthreads();

    const auto h = [&](int k, int c) { return round_to(plan[Site::h_store], S[k * kPitch + c]); };
    // v_new = U - W h
    for (int job = warp; job < kChunk / 16 * (kColumns / 8); job += kWarps) {
      const int row = job % (kChunk / 16) * 16, column = job / (kChunk / 16) * 8;
      float acc[4] = {};
      dot_tile(
          plan[Site::ws_dot], acc, [&](int r, int k) { return w[(row + r) * L::kKey + k]; },
          [&](int k, int c) { return h(k, column + c); }, 0, K);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = row + l.row + 8 * half, c = column + 2 * l.pair;
        float u[2];
        load_elements<2>(a.chunk.u, (slot * kChunk + r) * V + first_column + c, plan[Site::u_store],
                         u);
        vnew[r * kPitch + c] = round_to(plan[Site::vnew_store], u[0] - acc[2 * half]);
        vnew[r * kPitch + c + 1] = round_to(plan[Site::vnew_store], u[1] - acc[2 * half + 1]);
      }
    }
    __syncthreads();
    // o = Qg h + Aqk v_new
    for (int job = warp; writes_o && job < kChunk / 16 * (kColumns / 8); job += kWarps) {
      const int row = job % (kChunk / 16) * 16, column = job / (kChunk / 16) * 8;
      float acc[4] = {};
      dot_tile(
          plan[Site::qs_dot], acc, [&](int r, int k) { return qg[(row + r) * L::kKey + k]; },
          [&](int k, int c) { return h(k, column + c); }, 0, K);
      dot_tile(
          plan[Site::av_dot], acc, [&](int r, int k) { return aqk[(row + r) * kSquare + k]; },
          [&](int k, int c) { return vnew[k * kPitch + column + c]; }, 0, row + 16);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t t = begin + row + l.row + 8 * half;
        if (t >= end) continue;
        const std::int64_t at = (t * d.HV + hv) * V + first_column + column + 2 * l.pair;
        const float pair[2] = {acc[2 * half], acc[2 * half + 1]};
        if (a.o) store_elements<2>(a.o, at, Format::ieee, pair);
        store_elements<2>(a.o_cast, at, out, pair);
      }
    }
    __syncthreads();
    // S = gamma S + Kg^T v_new, the running state outside the tensor core.
    for (int job = warp; job < K / 16 * (kColumns / 8); job += kWarps) {
      const int row = job % (K / 16) * 16, column = job / (K / 16) * 8;
      float acc[4] = {};
      dot_tile(
          plan[Site::kv_dot], acc, [&](int r, int k) { return kg[k * L::kKey + row + r]; },
          [&](int k, int c) { return vnew[k * kPitch + column + c]; }, 0, kChunk);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int k = row + l.row + e / 2 * 8, at = k * kPitch + column + 2 * l.pair + e % 2;
        S[at] = round_to(plan[Site::state], fmaf(a.chunk.gamma[slot * K + k], S[at], acc[e]));
      }
    }
    __syncthreads();
  }
  for (int at = thread; at < K * kColumns; at += kThreads) {
    const int k = at / kColumns, c = at % kColumns;
    const float s = S[k * kPitch + c];
    a.state[(state_at + k) * V + first_column + c] =
        a.hand_off ? round_to(plan[Site::handoff], s) : s;
  }
}

}  // namespace

void launch_state_pass(const StatePassArgs& a, const Plan& plan, simt::Stream stream) {
  if (state_pass_in_bf16(a, plan))
    launch_state_pass_bf16(a, plan, stream);
  else
    launch_state_pass_any(a, plan, stream);
}

void launch_state_pass_any(const StatePassArgs& a, const Plan& plan, simt::Stream stream) {
  with_kernel(a.dims.K, a.dims.V, plan, [&](auto k, auto v, auto p) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    simt::launch("kda.state_pass",
                 dim3(V / kColumns, static_cast<unsigned>(a.dims.HV),
                      static_cast<unsigned>(a.packing.sequences)),
                 dim3(kThreads), Layout<K>::floats * sizeof(float), stream,
                 state_pass_kernel<K, V, decltype(p)>, a, p);
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
