// Launchers of the KDA kernels, one set a backend, and the choice of the instantiation.
#pragma once
#include <algorithm>
#include <string>
#include <type_traits>

#include "core/errors.h"
#include "kernels/kda/elements.cuh"
#include "kernels/kda/kda.h"

namespace numgate::kernels::NUMGATE_BACKEND {

void launch_prepare(const PrepareArgs&, const Plan&, simt::Stream);
void launch_state_pass(const StatePassArgs&, const Plan&, simt::Stream);
void launch_segment_map(const SegmentMapArgs&, const Plan&, simt::Stream);
void launch_merge(const MergeArgs&, const Plan&, simt::Stream);
void launch_decode(const DecodeArgs&, const Plan&, simt::Stream);
void launch_replay(const ReplayArgs&, const Plan&, simt::Stream);
void launch_flush(const FlushArgs&, const Plan&, simt::Stream);
void launch_l2_norm(const L2NormArgs&, const Plan&, simt::Stream);
void launch_gate(const GateArgs&, const Plan&, simt::Stream);
void launch_beta(const BetaArgs&, const Plan&, simt::Stream);
void launch_conv(const ConvArgs&, const Plan&, simt::Stream);
void launch_out_norm(const OutNormArgs&, const Plan&, simt::Stream);

// Two kernels each: for any formats, and a tuned one for bf16 operands with the same bits.
void launch_prepare_any(const PrepareArgs&, const Plan&, simt::Stream);
void launch_prepare_bf16(const PrepareArgs&, const Plan&, simt::Stream);
bool prepare_in_bf16(const PrepareArgs&, const Plan&);
void launch_state_pass_any(const StatePassArgs&, const Plan&, simt::Stream);
void launch_state_pass_bf16(const StatePassArgs&, const Plan&, simt::Stream);
bool state_pass_in_bf16(const StatePassArgs&, const Plan&);

inline RuntimePlan runtime_plan(const Plan& plan) {
  RuntimePlan p;
  std::copy(plan.formats.begin(), plan.formats.end(), p.formats);
  return p;
}

// Calls f(plan object): on CUDA a named plan is a compile-time constant, everything else is read at
// run time.
template <class F>
void with_plan(const Plan& plan, F f) {
#ifdef __CUDACC__
  if (plan.formats == reference_formats()) return f(StaticPlan<Named::reference>{});
  if (plan.formats == production_formats()) return f(StaticPlan<Named::production>{});
  if (plan.formats == production_formats(Format::tf32, Format::tf32))
    return f(StaticPlan<Named::tf32>{});
#endif
  f(runtime_plan(plan));
}

// The same for kernels without tensor-core sites: to them the named plans are one, all fp32.
template <class F>
void with_fp32_plan(const Plan& plan, F f) {
#ifdef __CUDACC__
  for (const Formats& named :
       {reference_formats(), production_formats(), production_formats(Format::tf32, Format::tf32)})
    if (plan.formats == named) return f(StaticPlan<Named::reference>{});
#endif
  f(runtime_plan(plan));
}

// Calls f(integral_constant K, integral_constant V).
template <class F>
void with_shape(int K, int V, F f) {
  using std::integral_constant;
  if (K == 64 && V == 64) return f(integral_constant<int, 64>{}, integral_constant<int, 64>{});
  if (K == 128 && V == 128) return f(integral_constant<int, 128>{}, integral_constant<int, 128>{});
  if (K == 64 && V == 128) return f(integral_constant<int, 64>{}, integral_constant<int, 128>{});
  throw UsageError("K,V", std::to_string(K) + "," + std::to_string(V), "no kernel of this shape");
}

// Calls f(integral_constant K, integral_constant V, plan object).
template <class F>
void with_kernel(int K, int V, const Plan& plan, F f) {
  with_plan(plan, [&](auto p) { with_shape(K, V, [&](auto k, auto v) { f(k, v, p); }); });
}
template <class F>
void with_fp32_kernel(int K, int V, const Plan& plan, F f) {
  with_fp32_plan(plan, [&](auto p) { with_shape(K, V, [&](auto k, auto v) { f(k, v, p); }); });
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
