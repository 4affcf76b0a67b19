#include "partitioning/shards.h"

namespace numgate {
namespace {

struct Strides {
  std::size_t outer = 1, inner;
  Strides(const Tensor& t, std::size_t axis) : inner(size_of(t.dtype)) {
    for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(t.shape[i]);
    for (std::size_t i = axis + 1; i < t.shape.size(); ++i)
      inner *= static_cast<std::size_t>(t.shape[i]);
  }
};

}  // namespace

Tensor slice(const Tensor& t, std::size_t axis, std::int64_t begin, std::int64_t end) {
  auto shape = t.shape;
  shape[axis] = end - begin;
  Tensor part(t.dtype, shape);
  const Strides s(t, axis);
  const std::size_t row = s.inner * static_cast<std::size_t>(end - begin);
  const std::size_t from_row = s.inner * static_cast<std::size_t>(t.shape[axis]);
  for (std::size_t i = 0; i < s.outer && row > 0; ++i)
    std::memcpy(part.bytes.data() + i * row,
                t.bytes.data() + i * from_row + s.inner * static_cast<std::size_t>(begin), row);
  return part;
}

void place(Tensor& whole, const Tensor& part, std::size_t axis, std::int64_t begin) {
  const Strides s(whole, axis);
  const std::size_t row = s.inner * static_cast<std::size_t>(part.shape[axis]);
  const std::size_t to_row = s.inner * static_cast<std::size_t>(whole.shape[axis]);
  for (std::size_t i = 0; i < s.outer && row > 0; ++i)
    std::memcpy(whole.bytes.data() + i * to_row + s.inner * static_cast<std::size_t>(begin),
                part.bytes.data() + i * row, row);
}

}  // namespace numgate
