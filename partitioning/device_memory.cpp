#include "partitioning/device_memory.h"

#include <algorithm>
#include <string>

#include "core/errors.h"
#include "partitioning/pieces.h"

namespace numgate {
namespace {

using kernels::kChunk;

std::size_t bytes_of(const TensorSpec& spec, const Shape& shape) {
  std::size_t bytes = size_of(tensor_dtype(spec, shape));
  for (auto d : tensor_shape(spec, shape)) bytes *= static_cast<std::size_t>(d);
  return bytes;
}

// Chunks whose operands are in memory at the same time.
std::int64_t chunks_at_once(const Case& c) {
  const auto chunks = [](std::int64_t tokens) { return (tokens + kChunk - 1) / kChunk; };
  if (c.schedule.kind == ScheduleKind::cp || c.schedule.kind == ScheduleKind::varlen ||
      c.stage == "kda.summary") {
    std::int64_t sum = 0;
    for (const Segment& s : c.schedule.kind == ScheduleKind::cp ? segments(c.schedule, c.shape.T)
                                                                : c.shape.sequence_segments())
      sum += chunks(s.size());
    return sum;
  }
  return chunks(std::min(c.shape.T, kSlab));
}

std::size_t recurrence_bytes(const Case& c) {
  const Shape& s = c.shape;
  const Plan& plan = c.plan.ran;
  const auto row = [&](Site site, std::int64_t width) {
    return kernels::store_bytes(plan[site]) * static_cast<std::size_t>(width);
  };
  const std::size_t chunk =
      kChunk * (row(Site::u_store, s.V) + row(Site::w_store, s.K) + row(Site::kg_store, s.K) +
                row(Site::qg_store, s.K) + row(Site::aqk_store, kChunk)) +
      static_cast<std::size_t>(s.K) * sizeof(float);
  const auto heads = static_cast<std::size_t>(s.HV);
  std::size_t bytes = chunk * heads * static_cast<std::size_t>(chunks_at_once(c));
  if (c.schedule.kind == ScheduleKind::cp) {
    const auto ranks = static_cast<std::size_t>(c.schedule.parameter);
    const std::size_t state = heads * static_cast<std::size_t>(s.K * s.V) * sizeof(float),
                      map = heads * static_cast<std::size_t>(s.K * s.K) * sizeof(float);
    // A rank's own map and state, all ranks' as gathered, two more states, and the fold.
    bytes += ranks * (1 + ranks) * (map + state) + 2 * ranks * state + state;
  }
  return bytes;
}

std::string gib(std::size_t bytes) {
  const std::string tenths = std::to_string(bytes * 10 >> 30);
  return (tenths.size() < 2 ? "0" : tenths.substr(0, tenths.size() - 1)) + "." + tenths.back() +
         " GiB";
}

}  // namespace

std::size_t device_bytes(const Case& c) {
  std::size_t bytes = 0;
  for (const auto& spec : stage(c.stage).inputs) bytes += bytes_of(spec, c.shape);
  for (const auto& spec : stage(c.stage).outputs) bytes += bytes_of(spec, c.shape);
  if (c.stage == "kda.prefill" || c.stage == "kda.core") {
    const TensorSpec cast{"o_cast", "T HV V", c.shape.in == Dtype::bf16 ? "in" : "f32"};
    bytes += bytes_of(cast, c.shape) + recurrence_bytes(c);
  } else if (c.stage == "kda.summary") {
    bytes += recurrence_bytes(c);
  }
  return bytes;
}

std::int64_t head_groups(const Case& c, const kernels::Backend& backend) {
  const std::size_t available = backend.available();
  for (std::int64_t groups = 1; groups <= c.shape.H; ++groups) {
    if (c.shape.H % groups != 0) continue;
    Case part = c;
    part.shape.H /= groups, part.shape.HV /= groups;
    const std::size_t bytes = device_bytes(part);
    if (bytes <= available) return groups;
    if (groups == c.shape.H)
      throw UsageError("case", c.id(),
                       "takes " + gib(bytes) + " of device memory for one key head; " +
                           gib(available) + " are free");
  }
  return 1;
}

}  // namespace numgate
