// Which rules explain what a device computed, and how they differ from the model's.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/simt/tensor_core.h"

namespace numgate::tensor_core {

struct Explanation {
  Rules rules;
  std::int64_t mismatches;  // of all outputs under these rules; 0: they explain the device
};

// The rules nearest to `model`, in the number of differences, that give every output of `device`
// (tiles with the D that was computed; a floating-point type); failing that the rules with the
// fewest mismatches on a sample.
Explanation explain(Type type, const Rules& model, std::span<const Tile> device);

// "keeps 24 fraction bits, the model 25", one a parameter that differs.
std::vector<std::string> differences(const Rules& device, const Rules& model);

}  // namespace numgate::tensor_core
