// The KDA kernels of the production plan behind C functions, for speed.py.
#include <algorithm>

#include "kernels/kda/launch.h"

namespace kernels = numgate::kernels;

namespace {

template <class F>
int guarded(F f) {
  try {
    f();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

std::int64_t operand_bytes(std::int64_t rows, int K, int V) {
  return rows * (3 * K + V + kernels::kChunk) * 2 + rows / kernels::kChunk * K * 4;
}

}  // namespace

extern "C" {

// Bytes of workspace for numgate_kda_prefill.
std::int64_t numgate_kda_workspace(std::int64_t slab, int H, int K, int V) {
  return operand_bytes((slab + 63) / 64 * 64 * H, K, V);
}

// One sequence of T tokens in slabs of `slab`, a multiple of 64. q, k, g [T, H, K], v, o [T, H, V]
// and beta [T, H] in bf16; A_log [H], dt_bias [H, K], state [H, K, V] in f32. From a zero state.
int numgate_kda_prefill(const void* q, const void* k, const void* v, const void* g,
                        const void* beta, const float* A_log, const float* dt_bias, void* o,
                        float* state, std::int64_t T, int H, int K, int V, std::int64_t slab,
                        void* workspace, cudaStream_t stream) {
  return guarded([&] {
    static const numgate::Plan plan = numgate::parse_plan("production");
    const auto at = [](const void* p, std::int64_t elements) {
      return static_cast<const void*>(static_cast<const std::uint16_t*>(p) + elements);
    };
    for (std::int64_t t = 0; t < T; t += slab) {
      kernels::PrepareArgs p;
      p.dims = {std::min(slab, T - t), H, H, K, V, numgate::Dtype::bf16, true};
      p.in = {false,
              at(q, t * H * K),
              at(k, t * H * K),
              at(v, t * H * V),
              at(g, t * H * K),
              at(beta, t * H),
              A_log,
              dt_bias};
      const std::int64_t rows = p.dims.chunks() * H * kernels::kChunk;
      auto* next = static_cast<std::uint16_t*>(workspace);
      const auto take = [&](std::int64_t columns) {
        return std::exchange(next, next + rows * columns);
      };
      p.out = {take(V), take(K), take(K), take(K), take(kernels::kChunk), nullptr};
      p.out.gamma = reinterpret_cast<float*>(next);
      kernels::cuda::launch_prepare(p, plan, stream);
      kernels::StatePassArgs s{p.dims, {}, p.out, t == 0 ? nullptr : state, state};
      s.o_cast = static_cast<std::uint16_t*>(o) + t * H * V;
      kernels::cuda::launch_state_pass(s, plan, stream);
    }
  });
}

// One token of each of B sequences. q, k, g [B, H, K], v, o [B, H, V], beta [B, H] in bf16; state
// [B, H, K, V] in f32, replaced.
int numgate_kda_decode(const void* q, const void* k, const void* v, const void* g, const void* beta,
                       const float* A_log, const float* dt_bias, void* o, float* state, int B,
                       int H, int K, int V, cudaStream_t stream) {
  return guarded([&] {
    static const numgate::Plan plan = numgate::parse_plan("production");
    kernels::DecodeArgs a;
    a.dims = {B, H, H, K, V, numgate::Dtype::bf16, true};
    a.in = {false, q, k, v, g, beta, A_log, dt_bias};
    a.state = state, a.o_cast = o;
    kernels::cuda::launch_decode(a, plan, stream);
  });
}

}  // extern "C"
