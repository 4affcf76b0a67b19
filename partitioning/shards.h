// Slices of tensors: what a rank is given, and where its part of the result goes.
#pragma once
#include "core/tensor.h"

namespace numgate {

// Elements [begin, end) of axis `axis`.
Tensor slice(const Tensor& t, std::size_t axis, std::int64_t begin, std::int64_t end);
// Writes `part` over elements [begin, begin + part.shape[axis]) of axis `axis`.
void place(Tensor& whole, const Tensor& part, std::size_t axis, std::int64_t begin);

}  // namespace numgate
