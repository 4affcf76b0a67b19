// Runs the tensor core's instructions on given tiles: on the CUDA backend the device's, on the CPU
// backend the model.
#pragma once
#include "kernels/simt/tensor_core.h"

namespace numgate::kernels {

struct TensorCoreProbe {
  tensor_core::Type type;
  tensor_core::Unit unit;
  int count;                 // tiles, a multiple of 4; four that follow each other share B
  tensor_core::Tile* tiles;  // [count]; D is written
  std::uint32_t* ran;        // [1]; becomes 1 where this image has the instruction
};

}  // namespace numgate::kernels
