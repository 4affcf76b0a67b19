// The draws of a shadow of the recurrence on a device.
#pragma once
#include "oracles/cuda/shadow_device.h"
#include "oracles/shadow/draws.h"

namespace numgate::team {

// Whether the device has the form of c.stage: kda.prefill and kda.core.
bool on_device(const Case& c);

// Adds all draws of both modes and all heads to `sums`, and the sites that rounded to `used`.
// Chunks run on the device; what happens between segments (fold, merge) and token by token on the
// host, in the same text as all of the host's shadow. Mode D gives the host's numbers up to double
// rounding of the elementary functions, mode I others of the same distribution.
void add_draws(TeamDevice& device, const Case& c, const Plan& plan, const TensorMap& inputs,
               const Truth& truth, const ShadowOptions& options, shadow::SiteSet active,
               shadow::Sums& sums, shadow::SiteSet& used);

}  // namespace numgate::team
