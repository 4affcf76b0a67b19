// A case on a device: inputs uploaded, outputs allocated, health checked at the end.
#pragma once
#include <deque>
#include <map>
#include <string>

#include "core/case_id.h"
#include "partitioning/device_buffer.h"
#include "partitioning/run.h"

namespace numgate {

class DeviceCase {
 public:
  DeviceCase(const Case& c, const TensorMap& inputs, kernels::Backend& backend,
             const RunOptions& options);

  const Case& c;
  kernels::Backend& backend;
  const RunOptions& options;

  const Plan& plan() const { return c.plan.ran; }
  // The case's dimensions, with `tokens` of its tokens.
  kernels::KdaDims dims(std::int64_t tokens) const;
  bool has(const std::string& input) const { return inputs_.contains(input); }
  // Device address of an input's element `index`.
  const void* input(const std::string& name, std::int64_t index = 0) const;
  // Device memory for an output of this type and shape; the first call allocates it.
  void* output(const std::string& name, Dtype dtype, const std::vector<std::int64_t>& shape);
  // Scratch memory that lives as long as the case.
  DeviceBuffer& scratch(std::size_t bytes);
  // Scratch memory holding a copy of `host`.
  template <class T>
  const T* constant(const std::vector<T>& host) {
    DeviceBuffer& buffer = scratch(host.size() * sizeof(T));
    buffer.upload(host.data());
    return buffer.at<T>();
  }
  // Frees scratch memory beyond the first `keep` buffers, after checking its guards.
  void release_scratch(std::size_t keep);
  std::size_t scratch_count() const { return scratch_.size(); }
  // Downloads every output and checks guards and casts.
  Observation finish();

 private:
  struct Output {
    DeviceBuffer buffer;
    Dtype dtype;
    std::vector<std::int64_t> shape;
  };
  std::map<std::string, std::pair<DeviceBuffer, Dtype>> inputs_;
  std::map<std::string, Output> outputs_;
  std::deque<DeviceBuffer> scratch_;
  std::vector<std::string> failures_;
};

}  // namespace numgate
