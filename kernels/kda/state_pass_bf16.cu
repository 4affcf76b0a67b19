// The recurrence over chunks where all operands are bf16: what state_pass.cu computes, bit for bit.
// A warp carries 16 columns of the state and needs no other warp: everything is transposed, so that
// the sums of one product are, as they lie in its registers, the left side of the next: the state
// of h^T W^T, and v_new^T of v_new^T Kg. The operands of chunks to come are under way.
#include "kernels/kda/bf16_tiles.cuh"
#include "kernels/kda/launch.h"
#include "kernels/simt/async_copy.h"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

constexpr int kWarps = 4, kThreads = kWarps * 32, kColumns = kWarps * 16, kStages = 3;

// Shared memory of one stage, in bf16 elements.
template <int K>
struct Layout {
  static constexpr int w = 0, kg = w + kChunk * K, qg = kg + kChunk * K;  // [64][K]
  static constexpr int aqk = qg + kChunk * K;                             // [64][64]
  static constexpr int u = aqk + kChunk * kChunk;                         // [64][kColumns]
  static constexpr int gamma = u + kChunk * kColumns;                     // [K] f32
  static constexpr int stage = gamma + 2 * K;
};

template <int K, int V, bool writes_o>
__global__ void __launch_bounds__(kThreads) state_pass_bf16_kernel(StatePassArgs a) {
  using L = Layout<K>;
  constexpr int kKeySteps = K / 16, kTokenSteps = kChunk / 16;
  const auto tile = [](int stage, int at, int count) {
    return simt::dynamic_shared<std::uint16_t>((stage * L::stage + at) * 2, count);
  };
  const auto decays = [](int stage) {
    return simt::dynamic_shared<float>((stage * L::stage + L::gamma) * 2, K);
  };

  const KdaDims& d = a.dims;
  const int warp = threadIdx.x / 32, hv = blockIdx.y, first_column = blockIdx.x * kColumns;
  const Lane l;
  const std::int64_t sequence = blockIdx.z;
  const std::int64_t first_chunk = a.packing.first_chunk(sequence);
  const std::int64_t last_chunk = a.packing.end_chunk(d, sequence);

  // Where this thread's next copies come from, 16 bytes each: rows a step apart.
  static_assert(kColumns == kChunk);  // u's and aqk's tiles are equally wide
  const std::int64_t first_slot = first_chunk * d.HV + hv;
  const int at = threadIdx.x * 8, narrow = swizzled<kColumns>(at / kColumns, at % kColumns),
            wide = swizzled<K>(at / K, at % K);
  const auto source = [&](const void* p, int pitch, int first) {
    return p ? static_cast<const std::uint16_t*>(p) + first_slot * kChunk * pitch + first : nullptr;
  };
  const std::uint16_t* from_w = source(a.chunk.w, K, at);
  const std::uint16_t* from_kg = source(a.chunk.kg, K, at);
  const std::uint16_t* from_qg = source(a.chunk.qg, K, at);
  const std::uint16_t* from_aqk = source(a.chunk.aqk, kChunk, at);
  const std::uint16_t* from_u =
      source(a.chunk.u, V, first_column + at / kColumns * V + at % kColumns);
  const float* from_gamma = a.chunk.gamma + first_slot * K + threadIdx.x * 4;
  // Quarter `part` of the next chunk's operands into a stage, all of them one group of copies.
  constexpr int kParts = 4;
  const auto fetch = [&](int stage, int part) {
    const auto copy = [&](int to, const std::uint16_t* from, auto columns, int pitch) {
      constexpr int kWide = decltype(columns)::value, kRows = kThreads * 8 / kWide,
                    kCopies = kChunk / kRows / kParts;
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        const int rows = (part * kCopies + i) * kRows;
        simt::copy16_async(tile(stage, to, kChunk * kWide),
                           (kWide == K ? wide : narrow) + rows * kWide, from + rows * pitch);
      }
    };
    constexpr std::integral_constant<int, K> key{};
    constexpr std::integral_constant<int, kChunk> square{};
    copy(L::w, from_w, key, K);
    copy(L::u, from_u, square, V);
    copy(L::kg, from_kg, key, K);
    if constexpr (writes_o) {
      copy(L::qg, from_qg, key, K);
      copy(L::aqk, from_aqk, square, kChunk);
    }
    if (part == 0 && threadIdx.x < K / 4)
      simt::copy16_async(decays(stage), threadIdx.x * 4, from_gamma);
  };
  const auto advance = [&] {
    const std::int64_t rows = std::int64_t{d.HV} * kChunk;
    from_w += rows * K, from_kg += rows * K, from_u += rows * V, from_gamma += d.HV * K;
    if constexpr (writes_o) from_qg += rows * K, from_aqk += rows * kChunk;
    simt::commit_copies();
  };

  // This lane's S[k][v]: v = column(e / 2), k = 8 t + 2 pair + e % 2.
  float S[2 * kKeySteps][4];
  const auto column = [&](int half) { return first_column + warp * 16 + l.row + 8 * half; };
  const auto state_at = [&](int t, int e) {
    return ((sequence * d.HV + hv) * K + 8 * t + 2 * l.pair + e % 2) * V + column(e / 2);
  };
#pragma unroll
  for (int t = 0; t < 2 * kKeySteps; ++t)
#pragma unroll
    for (int e = 0; e < 4; ++e) S[t][e] = a.state0 ? a.state0[state_at(t, e)] : 0.0f;
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
#pragma unroll
    for (int part = 0; part < kParts; ++part)
      if (first_chunk + i < last_chunk) fetch(i, part);
    advance();
  }

  const int w_at = b_transposed_at<K>(), kg_at = b_at<K>(), aqk_at = b_transposed_at<kChunk>(),
            u_at = a_transposed_at<kColumns>(warp * 16);
  int stage = 0;
  for (std::int64_t chunk = first_chunk; chunk < last_chunk; ++chunk) {
    const auto w = tile(stage, L::w, kChunk * K), kg = tile(stage, L::kg, kChunk * K),
               qg = tile(stage, L::qg, kChunk * K), aqk = tile(stage, L::aqk, kChunk * kChunk),
               u = tile(stage, L::u, kChunk * kColumns);
    const auto gamma = decays(stage);
    simt::wait_for_copies<kStages - 2>();
    __syncthreads();  // the chunk is here for all, and the one before it is done with
    const int next_stage = stage == 0 ? kStages - 1 : stage - 1;

    std::uint32_t h[kKeySteps][4];  // A of h^T
#pragma unroll
    for (int k = 0; k < kKeySteps; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        h[k][i] = bf16_pair(S[2 * k + i / 2][i % 2 * 2], S[2 * k + i / 2][i % 2 * 2 + 1]);

    // h^T W^T and, beside, o^T = h^T Qg^T: [16 columns][tokens].
    const bool more = chunk + kStages - 1 < last_chunk;
    float sum[2 * kTokenSteps][4] = {}, o[2 * kTokenSteps][4] = {};
#pragma unroll
    for (int k = 0; k < kKeySteps; ++k) {
      if (k % (kKeySteps / kParts) == 0 && more) fetch(next_stage, k / (kKeySteps / kParts));
#pragma unroll
      for (int t = 0; t < kTokenSteps; ++t) {
        const int from = (w_at ^ (k * 16)) + t * 16 * K;
        std::uint32_t b[4];
        simt::load_matrix_x4(b, w, from);
        mma_m16n8k16_bf16(sum[2 * t], h[k], b, sum[2 * t]);
        mma_m16n8k16_bf16(sum[2 * t + 1], h[k], b + 2, sum[2 * t + 1]);
        if constexpr (writes_o) {
          simt::load_matrix_x4(b, qg, from);
          mma_m16n8k16_bf16(o[2 * t], h[k], b, o[2 * t]);
          mma_m16n8k16_bf16(o[2 * t + 1], h[k], b + 2, o[2 * t + 1]);
        }
      }
    }
    advance();
    std::uint32_t v[kTokenSteps][4];  // A of v_new^T, v_new = U - W h
#pragma unroll
    for (int t = 0; t < kTokenSteps; ++t) {
      std::uint32_t pairs[4];
      simt::load_matrix_x4_transposed(pairs, u, u_at + t * 16 * kColumns);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&x)[4] = sum[2 * t + i / 2];
        v[t][i] =
            bf16_pair(low_bf16(pairs[i]) - x[i % 2 * 2], high_bf16(pairs[i]) - x[i % 2 * 2 + 1]);
      }
    }
    // S = gamma S + (v_new^T Kg)^T, the running state outside the tensor core.
    constexpr int kGroup = 4;  // steps of k side by side, so that their sums do not wait
#pragma unroll
    for (int first = 0; first < kKeySteps; first += kGroup) {
      float product[2 * kGroup][4] = {};
#pragma unroll
      for (int t = 0; t < kTokenSteps; ++t)
#pragma unroll
        for (int k = 0; k < kGroup; ++k) {
          std::uint32_t b[4];
          simt::load_matrix_x4_transposed(b, kg, (kg_at ^ ((first + k) * 16)) + t * 16 * K);
          mma_m16n8k16_bf16(product[2 * k], v[t], b, product[2 * k]);
          mma_m16n8k16_bf16(product[2 * k + 1], v[t], b + 2, product[2 * k + 1]);
        }
#pragma unroll
      for (int n = 0; n < 2 * kGroup; ++n) {
        float(&s)[4] = S[2 * first + n];
        const float2 decay = simt::load2(gamma, first * 16 + 8 * n + 2 * l.pair);
#pragma unroll
        for (int e = 0; e < 4; ++e) s[e] = fmaf(e % 2 ? decay.y : decay.x, s[e], product[n][e]);
      }
    }
    if constexpr (writes_o) {
      // o^T += v_new^T Aqk^T
#pragma unroll
      for (int m = 0; m < kTokenSteps; ++m)
#pragma unroll
        for (int t = 0; t <= m; ++t) {
          std::uint32_t b[4];
          simt::load_matrix_x4(b, aqk, (aqk_at ^ (t * 16)) + m * 16 * kChunk);
          mma_m16n8k16_bf16(o[2 * m], v[t], b, o[2 * m]);
          mma_m16n8k16_bf16(o[2 * m + 1], v[t], b + 2, o[2 * m + 1]);
        }
      const std::int64_t begin = a.packing.first_token(chunk);
      const std::int64_t left = a.packing.end_token(d, chunk) - begin;
      const int tokens = left < kChunk ? static_cast<int>(left) : kChunk, pitch = d.HV * V;
      const std::int64_t first = (begin * d.HV + hv) * V;
      auto* cast = static_cast<std::uint16_t*>(a.o_cast) + first + l.row * pitch + first_column +
                   warp * 16 + 2 * l.pair;
#pragma unroll
      for (int n = 0; n < 2 * kTokenSteps; ++n, cast += 8 * pitch) {
        const std::uint32_t low = simt::transpose_matrix(bf16_pair(o[n][0], o[n][1])),
                            high = simt::transpose_matrix(bf16_pair(o[n][2], o[n][3]));
        if (8 * n + l.row >= tokens) continue;
        simt::store_pair(cast, 0, low);
        simt::store_pair(cast, 8, high);
      }
      if (a.o)
#pragma unroll
        for (int n = 0; n < 2 * kTokenSteps; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int token = 8 * n + 2 * l.pair + e % 2;
            if (token < tokens) a.o[first + token * pitch + column(e / 2)] = o[n][e];
          }
    }
    stage = stage == kStages - 1 ? 0 : stage + 1;
  }
#pragma unroll
  for (int t = 0; t < 2 * kKeySteps; ++t)
#pragma unroll
    for (int e = 0; e < 4; ++e) a.state[state_at(t, e)] = S[t][e];
}

}  // namespace

bool state_pass_in_bf16(const StatePassArgs& a, const Plan& plan) {
  for (Site s :
       {Site::w_store, Site::u_store, Site::kg_store, Site::qg_store, Site::aqk_store,
        Site::h_store, Site::vnew_store, Site::ws_dot, Site::qs_dot, Site::av_dot, Site::kv_dot})
    if (plan[s] != Format::bf16) return false;
  return plan[Site::state] == Format::ieee &&
         (!a.hand_off || plan[Site::handoff] == Format::ieee) &&
         (!a.o_cast || output_format(plan[Site::output], a.dims.in) == Format::bf16);
}

void launch_state_pass_bf16(const StatePassArgs& a, const Plan&, simt::Stream stream) {
  const auto launch = [&](auto k, auto v, auto outputs) {
    constexpr int K = decltype(k)::value, V = decltype(v)::value;
    simt::launch("kda.state_pass_bf16",
                 dim3(V / kColumns, static_cast<unsigned>(a.dims.HV),
                      static_cast<unsigned>(a.packing.sequences)),
                 dim3(kThreads), kStages * Layout<K>::stage * sizeof(std::uint16_t), stream,
                 state_pass_bf16_kernel<K, V, decltype(outputs)::value>, a);
  };
  with_shape(a.dims.K, a.dims.V, [&](auto k, auto v) {
    if (a.o_cast)
      launch(k, v, std::true_type{});
    else
      launch(k, v, std::false_type{});
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
