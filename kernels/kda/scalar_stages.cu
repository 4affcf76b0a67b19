// The stages around the recurrence that treat each token or channel on its own.
#include "kernels/kda/launch.h"
#include "kernels/kda/rows.cuh"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr float kRmsEps = 1e-5f;

unsigned blocks(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

template <int K, class P>
__global__ void __launch_bounds__(kThreads) l2_norm_kernel(L2NormArgs a, P plan) {
  constexpr int N = K / 32;
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= a.dims.T * a.dims.H) return;
  const std::int64_t at = row * K + threadIdx.x % 32 * N;
  float x[N];
  load_elements<N>(a.x, at, input_format(a.dims.in), x);
  normalize<N>(x, 1.0f, plan[Site::norm]);
  store_elements<N>(a.y, at, Format::ieee, x);
}

template <class P>
__global__ void __launch_bounds__(kThreads) gate_kernel(GateArgs a, P plan) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t channels = std::int64_t{a.dims.HV} * a.dims.K;
  if (at >= a.dims.T * channels) return;
  const std::int64_t channel = at % channels;
  const float scale = elementary::exp(a.A_log[channel / a.dims.K]);
  const float raw = load_element(a.g_raw, at, a.dims.in);
  a.g[at] =
      round_to(plan[Site::gate], log_decay_of(a.dims.bounded_gate, raw, scale, a.dt_bias[channel]));
}

template <class P>
__global__ void __launch_bounds__(kThreads) beta_kernel(BetaArgs a, P plan) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= a.dims.T * a.dims.HV) return;
  a.beta[at] =
      round_to(plan[Site::beta], elementary::sigmoid(load_element(a.beta_raw, at, a.dims.in)));
}

// y[t] = silu(sum_j w[j] x[t - 3 + j]); before the start the state's three raw inputs.
template <class P>
__global__ void __launch_bounds__(kThreads) conv_kernel(ConvArgs a, P plan) {
  const std::int64_t c = std::int64_t{blockIdx.x} * kThreads + threadIdx.x, t = blockIdx.y;
  if (c >= a.C) return;
  const auto input = [&](std::int64_t s) {
    if (s >= 0) return load_element(a.x, s * a.C + c, a.in);
    return a.state0 ? load_element(a.state0, c * 3 + 3 + s, a.in) : 0.0f;
  };
  float sum = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) sum = fmaf(a.w[c * 4 + j], input(t - 3 + j), sum);
  a.y[t * a.C + c] = round_to(plan[Site::conv], elementary::silu(sum));
  if (t == a.T - 1)
#pragma unroll
    for (int j = 0; j < 3; ++j)
      store_element(a.state, c * 3 + j, input_format(a.in), input(a.T - 3 + j));
}

// y = o rsqrt(mean o^2 + 1e-5) w sigmoid(z).
template <int V, class P>
__global__ void __launch_bounds__(kThreads) out_norm_kernel(OutNormArgs a, P plan) {
  constexpr int N = V / 32;
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= a.T * a.HV) return;
  const int column = threadIdx.x % 32 * N;
  float o[N], z[N], w[N], squares = 0;
  load_elements<N>(a.o, row * V + column, Format::ieee, o);
  load_elements<N>(a.z, row * V + column, input_format(a.in), z);
  load_elements<N>(a.w, column, Format::ieee, w);
#pragma unroll
  for (int i = 0; i < N; ++i) squares = fmaf(o[i], o[i], squares);
  const float r = elementary::rsqrt(warp_sum(squares) * (1.0f / V) + kRmsEps);
#pragma unroll
  for (int i = 0; i < N; ++i)
    o[i] = round_to(plan[Site::out_norm], o[i] * r * w[i] * elementary::sigmoid(z[i]));
  store_elements<N>(a.y, row * V + column, Format::ieee, o);
}

}  // namespace

void launch_l2_norm(const L2NormArgs& a, const Plan& plan, simt::Stream stream) {
  with_fp32_kernel(a.dims.K, a.dims.V, plan, [&](auto k, auto, auto p) {
    simt::launch("kda.l2norm", dim3(blocks(a.dims.T * a.dims.H, kWarps)), dim3(kThreads), 0, stream,
                 l2_norm_kernel<decltype(k)::value, decltype(p)>, a, p);
  });
}

void launch_gate(const GateArgs& a, const Plan& plan, simt::Stream stream) {
  with_fp32_plan(plan, [&](auto p) {
    simt::launch("kda.gate", dim3(blocks(a.dims.T * a.dims.HV * a.dims.K, kThreads)),
                 dim3(kThreads), 0, stream, gate_kernel<decltype(p)>, a, p);
  });
}

void launch_beta(const BetaArgs& a, const Plan& plan, simt::Stream stream) {
  with_fp32_plan(plan, [&](auto p) {
    simt::launch("kda.beta", dim3(blocks(a.dims.T * a.dims.HV, kThreads)), dim3(kThreads), 0,
                 stream, beta_kernel<decltype(p)>, a, p);
  });
}

void launch_conv(const ConvArgs& a, const Plan& plan, simt::Stream stream) {
  with_fp32_plan(plan, [&](auto p) {
    simt::launch("kda.conv", dim3(blocks(a.C, kThreads), static_cast<unsigned>(a.T)),
                 dim3(kThreads), 0, stream, conv_kernel<decltype(p)>, a, p);
  });
}

void launch_out_norm(const OutNormArgs& a, const Plan& plan, simt::Stream stream) {
  with_fp32_kernel(64, a.V, plan, [&](auto, auto v, auto p) {
    simt::launch("kda.out_norm", dim3(blocks(a.T * a.HV, kWarps)), dim3(kThreads), 0, stream,
                 out_norm_kernel<decltype(v)::value, decltype(p)>, a, p);
  });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
