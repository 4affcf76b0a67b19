// Rows of a tensor as a form's matrix, wherever the tensor lies.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/tensor.h"
#include "oracles/forms/sites.h"

namespace numgate::forms {

// Elements [origin, ...) of a tensor, by their index in the whole.
struct Elements {
  const void* data = nullptr;
  Dtype dtype = Dtype::f32;
  std::int64_t origin = 0;

  // The element's exact value.
  NUMGATE_HOST_DEVICE double at(std::int64_t i) const {
    i -= origin;
    if (dtype == Dtype::f64) return static_cast<const double*>(data)[i];
    if (dtype == Dtype::f32) return static_cast<const float*>(data)[i];
    const std::uint32_t word = std::uint32_t{static_cast<const std::uint16_t*>(data)[i]} << 16;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
};

// Rows `first`, first + 1, ... of one head: element (row * heads + head) * width + column of the
// tensor.
template <class M>
NUMGATE_HOST_DEVICE M read_rows(const Elements& tensor, std::int64_t first, std::int64_t rows,
                                std::int64_t heads, std::int64_t head, std::int64_t width) {
  using Real = typename M::Scalar;
  return M::NullaryExpr(rows, width, [=](Index r, Index d) {
    return Real(tensor.at(((first + r) * heads + head) * width + d));
  });
}

}  // namespace numgate::forms
