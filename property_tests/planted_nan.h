// One NaN in an input, which must show: a kernel that swallows it (a maximum or a clamp that drops
// NaN, an exponent taken from its bits) would hide from its user that its input was broken.
#pragma once
#include <cstdint>
#include <string>

#include "core/case_id.h"
#include "core/tensor.h"

namespace numgate {

struct PlantedNan {
  std::string tensor;  // an input with a row a token
  std::int64_t token = 0;
  std::int64_t head = 0, heads = 1;  // of the input [T][heads, or channels][...]
  std::int64_t element = 0;
  double was = 0;  // what the NaN replaced
};

// Replaces one element of `inputs` by NaN, which one is drawn by the case's id.
PlantedNan plant_nan(const Case& c, TensorMap& inputs);
// Puts back what was there.
void remove_nan(const PlantedNan& planted, TensorMap& inputs);

// What hides the NaN: of every output with a row a token, each row of the NaN's token and of the
// heads that read it holds something that is not finite; of a stage without such outputs any
// element does. Empty if so, else one sentence.
std::string swallowed_nan(const Case& c, const PlantedNan& planted, const TensorMap& outputs);

}  // namespace numgate
