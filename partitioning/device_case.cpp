#include "partitioning/device_case.h"

#include "core/errors.h"

namespace numgate {

DeviceCase::DeviceCase(const Case& c, const TensorMap& inputs, kernels::Backend& backend,
                       const RunOptions& options)
    : c(c), backend(backend), options(options) {
  for (const auto& spec : stage(c.stage).inputs) {
    const auto found = inputs.find(std::string(spec.name));
    if (found == inputs.end()) throw UsageError("input", std::string(spec.name), "is missing");
    const Tensor& t = found->second;
    if (t.shape != tensor_shape(spec, c.shape) || t.dtype != tensor_dtype(spec, c.shape))
      throw UsageError("input", std::string(spec.name), "has another shape or type than the case");
    DeviceBuffer buffer(backend, t.bytes.size());
    buffer.upload(t.bytes.data());
    inputs_.emplace(spec.name, std::pair{std::move(buffer), t.dtype});
  }
}

kernels::KdaDims DeviceCase::dims(std::int64_t tokens) const {
  const Shape& s = c.shape;
  return {tokens,
          static_cast<int>(s.H),
          static_cast<int>(s.HV),
          static_cast<int>(s.K),
          static_cast<int>(s.V),
          s.in,
          s.gate == Gate::bounded};
}

const void* DeviceCase::input(const std::string& name, std::int64_t index) const {
  const auto& [buffer, dtype] = inputs_.at(name);
  return buffer.at(static_cast<std::size_t>(index) * size_of(dtype));
}

void* DeviceCase::output(const std::string& name, Dtype dtype,
                         const std::vector<std::int64_t>& shape) {
  auto found = outputs_.find(name);
  if (found == outputs_.end()) {
    std::size_t bytes = size_of(dtype);
    for (auto d : shape) bytes *= static_cast<std::size_t>(d);
    found =
        outputs_.emplace(name, Output{DeviceBuffer(backend, bytes, options.poison), dtype, shape})
            .first;
  }
  return found->second.buffer.at();
}

DeviceBuffer& DeviceCase::scratch(std::size_t bytes) {
  return scratch_.emplace_back(backend, bytes, options.poison);
}

void DeviceCase::release_scratch(std::size_t keep) {
  while (scratch_.size() > keep) {
    if (!scratch_.back().guards_intact()) failures_.push_back("a kernel wrote beyond a workspace");
    scratch_.pop_back();
  }
}

Observation DeviceCase::finish() {
  backend.synchronize();
  Observation seen;
  for (const auto& [name, input] : inputs_)
    if (!input.first.guards_intact())
      failures_.push_back("a kernel wrote beyond the input " + name);
  release_scratch(0);
  inputs_.clear();
  for (auto& [name, output] : outputs_) {
    if (!output.buffer.guards_intact())
      failures_.push_back("a kernel wrote beyond the output " + name);
    Tensor t(output.dtype, output.shape);
    output.buffer.download(t.bytes.data());
    output.buffer = {};
    seen.outputs.emplace(name, std::move(t));
  }
  seen.failures = std::move(failures_);
  return seen;
}

}  // namespace numgate
