// The shadow: the form in double, each site rounding at random to its declared format. It answers
// how large an error the declared precisions explain, here, on these inputs (DESIGN 1). A kernel
// that does what its plan declares scores about 1 against it. The same forms read with the
// hardware's own, deterministic rounding give an emulated kernel (compute_emulation).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/case_id.h"
#include "core/profile.h"
#include "oracles/device.h"

namespace numgate {

struct Truth;  // oracles/truth.h

struct ShadowOptions {
  int draws = 8;    // in each of the two modes; at least 2, at most kMaxDraws
  int threads = 0;  // 0: OpenMP's default. The result does not depend on it
  // Where the walks of kda.prefill and kda.core run; the other stages always do on the CPU. Mode D
  // gives the same numbers on both, mode I others of the same distribution.
  OracleDevice device = OracleDevice::cpu;
  // Called now and then with the share done, never by two threads at once.
  std::function<void(double)> progress = {};
};

// Shadow of `declared` under c.schedule's form, on c's inputs, measured against truth.
//
// One entry per judged output tensor of c.stage, named as in core/stage.h: `o` before its cast to
// the output format, `state`, and `fold` where the schedule is cp (the fold over all ranks, judged
// against the truth of `state`); `M`, `B` of kda.summary, `state` of kda.merge; `y`, `g`, `beta` of
// the scalar stages (`conv_state` is copied, never rounded, and has no shadow). c.plan is not read.
//
// - windows: for outputs whose first extent is T those of token_windows(c, heads), where a tensor
//   [T C] or [T HV] has one row a token (heads = 1); for `state` and `fold` those of
//   state_windows(c, HV); for `M`, `B` one a head.
//   squares[mode][draw] = sum over rows of max(sum of squared errors, floor^2), the floor being
//   half an fp32 ulp of the row's largest |truth|, and 2^-149. A state is one row.
// - row_max, outputs with tokens only: mean over draws of max(max |error|, floor).
// - row_null, outputs with tokens only: see core/profile.h.
//
// Inputs are those of core/stage.h at their own types; a missing `state0` or `conv_state0` is zero.
// Raises UsageError for a missing input, a number of draws out of range or a device that is not
// there, std::out_of_range where truth lacks an output.
std::map<std::string, TensorShadow> compute_shadow(const Case& c, const Plan& declared,
                                                   const TensorMap& inputs, const Truth& truth,
                                                   const ShadowOptions& options);

// The mean square error of the form with one site rounding at a time (the others exact), over that
// of the full shadow; each the larger of the two modes, summed over the whole tensor. Shares of
// independent sites add up to about 1. Only sites that round anything appear, ordered by tensor,
// then by descending share.
struct SiteShare {
  Site site;
  std::string tensor;
  double share;
};
std::vector<SiteShare> site_shares(const Case& c, const Plan& declared, const TensorMap& inputs,
                                   const Truth& truth, const ShadowOptions& options);

// The form read with deterministic rounding as on the H200 (NUMERICS 1): fp32 fma chains,
// tensor-core steps with F = 25 and truncated stores, correctly rounded elementary functions.
// Outputs as in compute_shadow, f64, without the cast of `o`; `state` is [N HV K V]. An emulated
// kernel, not bit-exact (elementary functions differ).
TensorMap compute_emulation(const Case& c, const Plan& ran, const TensorMap& inputs);

}  // namespace numgate
