// Families: input distributions, each built to expose one mechanism. Every element is a function of
// (seed, tensor, index) alone, whatever computes it and on how many threads.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/case_id.h"
#include "core/schedule.h"
#include "core/tensor.h"

namespace numgate {

struct FamilyInfo {
  std::string_view name, exposes;
  std::vector<std::string_view> stages;
  // Claims that the state keeps its content over the whole length; `liveness` checks the claim.
  bool persistent = false;

  bool applies_to(std::string_view stage) const;
};

const std::vector<FamilyInfo>& families();

// Raises UsageError for an unknown family.
const FamilyInfo& family(std::string_view name);

// Raises UsageError where the case's family is unknown or does not apply to its stage.
void check_family(const Case& c);

// The stage's inputs, by the names of core/stage.h.
TensorMap generate(const Case& c);

// Tokens [begin, end) of one input, the same bits as in the whole; inputs without tokens come
// whole.
Tensor generate(const Case& c, std::string_view tensor, Segment tokens);

struct Liveness {
  bool live = false;
  std::string reason;  // what keeps the case alive or makes it vacuous, with the number measured
};

// Whether the case can show what its family exposes. A persistent family is vacuous where the state
// forgets: the retention of its best channel, exp(sum of g + log(1 - beta khat^2)), has to stay
// above 0.1 in every head over the last three quarters of the longest sequence; under cp over one
// rank's shard, because the error of a segment's map vanishes with the map.
Liveness liveness(const Case& c, const TensorMap& inputs);

}  // namespace numgate
