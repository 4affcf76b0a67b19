// Tensors as data: a type, a shape and bytes. No arithmetic.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/large_vector.h"

namespace numgate {

enum class Dtype : std::uint8_t { bf16, f32, f64 };

constexpr std::size_t size_of(Dtype d) { return d == Dtype::bf16 ? 2 : d == Dtype::f32 ? 4 : 8; }
constexpr std::string_view name(Dtype d) {
  return d == Dtype::bf16 ? "BF16" : d == Dtype::f32 ? "F32" : "F64";
}

struct Tensor {
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;  // row-major, last index fastest
  LargeVector<std::byte> bytes;

  Tensor() = default;
  Tensor(Dtype d, std::vector<std::int64_t> s)
      : dtype(d), shape(std::move(s)), bytes(size() * size_of(d)) {}

  std::int64_t size() const {
    std::int64_t n = 1;
    for (auto d : shape) n *= d;
    return n;
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes.data());
  }

  // The element's exact value.
  double at(std::int64_t i) const {
    if (dtype == Dtype::f64) return as<double>()[i];
    if (dtype == Dtype::f32) return as<float>()[i];
    const std::uint32_t word = std::uint32_t{as<std::uint16_t>()[i]} << 16;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
};

// A stage's inputs or outputs by the names of core/stage.h.
using TensorMap = std::map<std::string, Tensor>;

}  // namespace numgate
