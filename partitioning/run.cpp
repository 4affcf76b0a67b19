#include "partitioning/run.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "core/errors.h"
#include "kernels/formats/formats.h"
#include "kernels/simt/cpu_runtime.h"
#include "partitioning/convolution.h"
#include "partitioning/device_case.h"
#include "partitioning/device_memory.h"
#include "partitioning/recurrence.h"
#include "partitioning/shards.h"

namespace numgate {
namespace {

using namespace kernels;
using namespace formats;

const float* f32(const DeviceCase& d, const char* name) {
  return static_cast<const float*>(d.input(name));
}

float* f32_output(DeviceCase& d, const char* name) {
  for (const auto& spec : stage(d.c.stage).outputs)
    if (spec.name == name)
      return static_cast<float*>(d.output(name, Dtype::f32, tensor_shape(spec, d.c.shape)));
  throw std::logic_error("no output " + std::string(name));
}

void run_merge(DeviceCase& d) {
  const Shape& s = d.c.shape;
  d.backend.run(
      MergeArgs{static_cast<int>(s.HV), static_cast<int>(s.K), static_cast<int>(s.V),
                static_cast<int>(s.T), f32(d, "M"), f32(d, "B"),
                s.state0 == State0::zero ? nullptr : f32(d, "state0"), f32_output(d, "state")},
      d.plan());
}

void run_on_device(DeviceCase& d) {
  const std::string& name = d.c.stage;
  const KdaDims n = d.dims(d.c.shape.T);
  if (name == "kda.prefill" || name == "kda.core")
    run_recurrence(d);
  else if (name == "kda.summary")
    run_summary(d);
  else if (name == "kda.merge")
    run_merge(d);
  else if (name == "kda.conv")
    run_convolution(d);
  else if (name == "kda.l2norm")
    d.backend.run(L2NormArgs{n, d.input("x"), f32_output(d, "y")}, d.plan());
  else if (name == "kda.gate")
    d.backend.run(
        GateArgs{n, d.input("g_raw"), f32(d, "A_log"), f32(d, "dt_bias"), f32_output(d, "g")},
        d.plan());
  else if (name == "kda.beta")
    d.backend.run(BetaArgs{n, d.input("beta_raw"), f32_output(d, "beta")}, d.plan());
  else if (name == "kda.out_norm")
    d.backend.run(OutNormArgs{n.T, n.HV, n.V, n.in, f32(d, "o"), d.input("z"), f32(d, "w"),
                              f32_output(d, "y")},
                  d.plan());
  else
    throw UsageError("stage", name, "has no kernel");
}

// `o_cast` must be the rounding of `o`, element by element.
void check_cast(const Case& c, Observation& seen) {
  const auto cast = seen.outputs.find("o_cast");
  if (cast == seen.outputs.end()) return;
  const Format format = output_format(c.plan.declared[Site::output], c.shape.in);
  const float* o = seen.outputs.at("o").as<float>();
  const Tensor& t = cast->second;
  std::int64_t wrong = 0;
#pragma omp parallel for reduction(+ : wrong)
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const bool narrow = store_bytes(format) == 2;
    if (narrow != (t.dtype == Dtype::bf16)) {
      ++wrong;
    } else if (narrow) {
      const std::uint16_t word = t.as<std::uint16_t>()[i];
      wrong += word != (format == Format::fp16 ? fp16_from_float(o[i]) : bf16_from_float(o[i]));
    } else {
      float expected = o[i];
      if (format == Format::tf32) expected = tf32_cut(o[i]);
      if (format == Format::tf32rna) expected = tf32_rna(o[i]);
      wrong += t.as<std::uint32_t>()[i] != std::bit_cast<std::uint32_t>(expected);
    }
  }
  if (wrong > 0)
    seen.failures.push_back(std::to_string(wrong) +
                            " elements of the cast o are not the rounding of o");
  seen.outputs.erase(cast);
}

Observation run_whole(const Case& c, const TensorMap& inputs, Backend& backend,
                      const RunOptions& options) {
  DeviceCase device(c, inputs, backend, options);
  run_on_device(device);
  Observation seen = device.finish();
  check_cast(c, seen);
  return seen;
}

// The axis along which heads are cut, or the channels of the convolution; none for what heads
// share.
std::optional<std::size_t> head_axis(std::string_view shape, bool one_sequence) {
  std::size_t axis = 0;
  for (std::size_t begin = 0; begin < shape.size(); ++axis) {
    const std::size_t end = std::min(shape.find(' ', begin), shape.size());
    const auto key = shape.substr(begin, end - begin);
    begin = end + 1;
    if (key == "H" || key == "HV" || key == "C") return axis;
    if (key == "N" && one_sequence) --axis;
  }
  return std::nullopt;
}

// Heads are independent: each group of them runs as a case of its own, under tp as the share of a
// rank.
Observation run_by_heads(const Case& c, const TensorMap& inputs, Backend& backend,
                         const RunOptions& options, std::int64_t groups) {
  const bool one_sequence = c.shape.sequences() == 1;
  Case part = c;
  if (c.schedule.kind == ScheduleKind::tp) part.schedule = {};
  part.shape.H /= groups, part.shape.HV /= groups;
  std::vector<TensorSpec> outputs = stage(c.stage).outputs;
  if (part.schedule.kind == ScheduleKind::cp && c.stage != "kda.conv")
    outputs.push_back({"fold", "N HV K V", "f32"});
  Observation seen;
  for (const auto& spec : outputs)
    seen.outputs.emplace(spec.name,
                         Tensor(tensor_dtype(spec, c.shape), tensor_shape(spec, c.shape)));
  for (std::int64_t r = 0; r < groups; ++r) {
    TensorMap share;
    for (const auto& spec : stage(c.stage).inputs) {
      const auto axis = head_axis(spec.shape, one_sequence);
      const Tensor& whole = inputs.at(std::string(spec.name));
      const std::int64_t width = axis ? whole.shape[*axis] / groups : 0;
      share.emplace(spec.name, axis ? slice(whole, *axis, r * width, (r + 1) * width) : whole);
    }
    Observation own = run_whole(part, share, backend, options);
    for (const auto& spec : outputs) {
      const Tensor& piece = own.outputs.at(std::string(spec.name));
      const std::size_t axis = head_axis(spec.shape, one_sequence).value();
      place(seen.outputs.at(std::string(spec.name)), piece, axis, r * piece.shape[axis]);
    }
    seen.failures.insert(seen.failures.end(), own.failures.begin(), own.failures.end());
  }
  return seen;
}

}  // namespace

Observation run_case(const Case& c, const TensorMap& inputs, Backend& backend,
                     const RunOptions& options) {
  simt::set_schedule_seed(options.schedule_seed);
  std::int64_t groups = c.schedule.kind == ScheduleKind::tp ? c.schedule.parameter : 1;
  try {
    groups = std::max({groups, options.head_groups, head_groups(c, backend)});
    return groups > 1 ? run_by_heads(c, inputs, backend, options, groups)
                      : run_whole(c, inputs, backend, options);
  } catch (const KernelError& e) {
    throw KernelError(c.id() + ": " + e.what());
  }
}

}  // namespace numgate
