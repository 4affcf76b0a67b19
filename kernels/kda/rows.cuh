// One warp prepares one token of one head: norm, gate, beta.
#pragma once
#include "kernels/elementary.h"
#include "kernels/kda/kda.h"
#include "kernels/kda/tile_dot.cuh"

namespace numgate::kernels::NUMGATE_BACKEND {

inline constexpr float kLog2e = 1.44269504f;  // 1.3e-8 from log2(e): below half an fp32 ulp
inline constexpr float kNormEps = 1e-6f, kGateLowerBound = -5.0f;

// Sum of a row's squares: lane l holds elements l N .. l N + N - 1. PIPELINE 2.10.
template <int N>
__device__ __forceinline__ float sum_of_squares(const float (&x)[N]) {
  float squares = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) squares = fmaf(x[i], x[i], squares);
  return warp_sum(squares);
}
__device__ __forceinline__ float inverse_norm(float squares) {
  return elementary::rsqrt(squares + kNormEps);
}
template <int N>
__device__ __forceinline__ void normalize(float (&x)[N], float scale, Format norm) {
  const float r = inverse_norm(sum_of_squares(x)) * scale;
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = round_to(norm, x[i] * r);
}

// Natural-log decay. PIPELINE 2.11; plain: KDA_CP 1.
__device__ __forceinline__ float log_decay_of(bool bounded, float raw, float a, float bias) {
  const float x = raw + bias;
  return bounded ? kGateLowerBound * elementary::sigmoid(a * x) : -a * elementary::softplus(x);
}

template <int K>
__device__ __forceinline__ float query_scale() {
  return K == 64 ? 0.125f : 0.088388347648318447f;
}

// q, k (lane's share) and g of token t and value head hv; zeros where the token is not `valid`.
template <int K, class P>
struct PreparedRow {
  static constexpr int N = K / 32;
  float q[N], k[N], g[N], beta;

  __device__ PreparedRow(const KdaDims& d, const KdaInputs& in, const P& plan, std::int64_t t,
                         bool valid, int hv) {
    const int lane = threadIdx.x % 32, h = hv / (d.HV / d.H);
    if (!valid) {
#pragma unroll
      for (int i = 0; i < N; ++i) q[i] = k[i] = g[i] = 0;
      beta = 0;
      return;
    }
    const Dtype dtype = in.prepared ? Dtype::f32 : d.in;
    const std::int64_t key = (t * d.H + h) * K + lane * N, value = (t * d.HV + hv) * K + lane * N;
    load_elements<N>(in.q, key, input_format(dtype), q);
    load_elements<N>(in.k, key, input_format(dtype), k);
    load_elements<N>(in.gate, value, input_format(dtype), g);
    beta = load_element(in.beta, t * d.HV + hv, dtype);
    if (in.prepared) return;
    normalize<N>(k, 1.0f, plan[Site::norm]);
    normalize<N>(q, query_scale<K>(), plan[Site::norm]);
    const float a = elementary::exp(in.A_log[hv]);
#pragma unroll
    for (int i = 0; i < N; ++i)
      g[i] = round_to(plan[Site::gate],
                      log_decay_of(d.bounded_gate, g[i], a, in.dt_bias[hv * K + lane * N + i]));
    beta = round_to(plan[Site::beta], elementary::sigmoid(beta));
  }
};

}  // namespace numgate::kernels::NUMGATE_BACKEND
