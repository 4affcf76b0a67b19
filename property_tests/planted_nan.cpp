#include "property_tests/planted_nan.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/stage.h"
#include "property_tests/random_stream.h"

namespace numgate {
namespace {

using Index = std::int64_t;

bool all_finite(const Tensor& t, Index begin, Index end) {
  for (Index i = begin; i < end; ++i)
    if (!std::isfinite(t.at(i))) return false;
  return true;
}

// A number that the tensor's type has, or NaN.
void store(Tensor& t, Index i, float x) {
  if (t.dtype == Dtype::bf16)
    t.as<std::uint16_t>()[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  else
    t.as<float>()[i] = x;
}

}  // namespace

PlantedNan plant_nan(const Case& c, TensorMap& inputs) {
  std::vector<std::string> tensors;
  for (const TensorSpec& spec : stage(c.stage).inputs)
    if (spec.shape.starts_with("T ")) tensors.emplace_back(spec.name);
  const Stream stream(hash_of(c.id()), "planted NaN");
  const auto draw = [&](std::uint64_t i, Index n) {
    return static_cast<Index>(stream.bits(i) % static_cast<std::uint64_t>(n));
  };
  PlantedNan planted;
  planted.tensor = tensors[static_cast<std::size_t>(draw(0, static_cast<Index>(tensors.size())))];
  Tensor& t = inputs.at(planted.tensor);
  planted.heads = t.shape[1];
  planted.token = draw(1, t.shape[0]);
  planted.head = draw(2, planted.heads);
  const Index width = t.size() / (t.shape[0] * planted.heads);
  planted.element = (planted.token * planted.heads + planted.head) * width + draw(3, width);
  planted.was = t.at(planted.element);
  store(t, planted.element, std::numeric_limits<float>::quiet_NaN());
  return planted;
}

void remove_nan(const PlantedNan& planted, TensorMap& inputs) {
  store(inputs.at(planted.tensor), planted.element, static_cast<float>(planted.was));
}

std::string swallowed_nan(const Case& c, const PlantedNan& planted, const TensorMap& outputs) {
  const std::string source = "a NaN in " + planted.tensor + " at token " +
                             std::to_string(planted.token) + ", head " +
                             std::to_string(planted.head);
  bool rows = false;
  for (const TensorSpec& spec : stage(c.stage).outputs) {
    if (!spec.shape.starts_with("T ")) continue;
    rows = true;
    const auto found = outputs.find(std::string(spec.name));
    if (found == outputs.end()) continue;  // another rule of health says so
    const Tensor& t = found->second;
    // A key head is read by `shared` value heads.
    const Index heads = t.shape[1], width = t.size() / (t.shape[0] * heads),
                shared = heads / planted.heads;
    for (Index h = planted.head * shared; h < (planted.head + 1) * shared; ++h) {
      const Index first = (planted.token * heads + h) * width;
      if (all_finite(t, first, first + width))
        return source + " leaves " + std::string(spec.name) + " finite there";
    }
  }
  if (rows) return {};
  for (const auto& [name, t] : outputs)
    if (!all_finite(t, 0, t.size())) return {};
  return source + " is in no output";
}

}  // namespace numgate
