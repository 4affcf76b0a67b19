#include "cli/device_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/simt/tensor_core_search.h"
#include "partitioning/device_buffer.h"

namespace numgate {
namespace tc = tensor_core;

std::string name(const Form& f) {
  return fmt::format("{} {}n8k{} {}", f.unit == tc::Unit::mma ? "mma.sync" : "wgmma",
                     f.unit == tc::Unit::mma ? "m16" : "m64", tc::depth(f.type), tc::name(f.type));
}

std::vector<Form> tensor_core_forms() {
  std::vector<Form> forms;
  for (const tc::Unit unit : {tc::Unit::mma, tc::Unit::wgmma})
    for (const tc::Type type : {tc::Type::tf32, tc::Type::bf16, tc::Type::fp16, tc::Type::e4m3,
                                tc::Type::e5m2, tc::Type::s8, tc::Type::s8_satfinite})
      forms.push_back({type, unit});
  return forms;
}

std::int64_t FormCheck::wrong() const {
  return std::accumulate(mismatches.begin(), mismatches.end(), std::int64_t{0});
}

Device device_of(kernels::Backend& backend) {
  return [&backend](const Form& form, std::span<tc::Tile> tiles) {
    DeviceBuffer on_device(backend, tiles.size_bytes()),
        ran_on_device(backend, sizeof(std::uint32_t));
    std::uint32_t ran = 0;
    on_device.upload(tiles.data());
    ran_on_device.upload(&ran);
    backend.run(kernels::TensorCoreProbe{form.type, form.unit, static_cast<int>(tiles.size()),
                                         on_device.at<tc::Tile>(),
                                         ran_on_device.at<std::uint32_t>()});
    backend.synchronize();
    on_device.download(tiles.data());
    ran_on_device.download(&ran);
    return ran != 0;
  };
}

FormCheck check_form(const Form& form, const Device& device, int count) {
  FormCheck check;
  check.form = form;
  std::vector<tc::Tile> tiles = tc::input_tiles(form.type, count);
  check.ran = device(form, tiles);
  if (!check.ran) return check;
  check.outputs = std::int64_t{count} * tc::kRows * tc::kColumns;

  std::array<std::int64_t, tc::kInputClasses> mismatches{};
  std::int64_t models_differ = 0;
#pragma omp parallel
  {
    std::array<std::int64_t, tc::kInputClasses> own{};
    std::int64_t own_differ = 0;
#pragma omp for schedule(static)
    for (int t = 0; t < count; ++t) {
      const tc::Tile& seen = tiles[static_cast<std::size_t>(t)];
      tc::Tile fast = seen, reference = seen;
      tc::multiply(form.type, form.unit, fast);
      tc::multiply_reference(form.type, form.unit, reference);
      for (int j = 0; j < tc::kColumns; ++j)
        for (int i = 0; i < tc::kRows; ++i) {
          own[static_cast<std::size_t>(tc::input_class(t))] += seen.d[j][i] != fast.d[j][i];
          own_differ += fast.d[j][i] != reference.d[j][i];
        }
    }
#pragma omp critical
    {
      for (std::size_t c = 0; c < own.size(); ++c) mismatches[c] += own[c];
      models_differ += own_differ;
    }
  }
  check.mismatches = mismatches;
  check.models_differ = models_differ;

  if (check.wrong() > 0 && !tc::is_integer(form.type)) {
    const tc::Rules model = tc::hopper_rules(form.type, form.unit);
    const tc::Explanation found = tc::explain(form.type, model, tiles);
    check.differences = tc::differences(found.rules, model);
    check.unexplained = found.mismatches;
  }
  return check;
}

std::string describe(const FormCheck& c) {
  if (!c.ran) return fmt::format("{:<32} not on this device or not in this build\n", name(c.form));
  std::string text =
      fmt::format("{:<32} {} outputs, {} mismatches\n", name(c.form), c.outputs, c.wrong());
  for (std::size_t i = 0; i < c.mismatches.size(); ++i)
    if (c.mismatches[i])
      text += fmt::format("    {:<20} {}\n", name(static_cast<tc::InputClass>(i)), c.mismatches[i]);
  if (!c.differences.empty())
    text += fmt::format("    this device {}\n", fmt::join(c.differences, "; it "));
  if (c.unexplained)
    text += fmt::format("    no known rules explain this device: {} mismatches are left\n",
                        c.unexplained);
  if (c.models_differ)
    text +=
        fmt::format("    the fast and the integer model differ in {} outputs\n", c.models_differ);
  return text;
}

FunctionDevice functions_of(kernels::Backend& backend) {
  return [&backend](kernels::Function f, std::span<const std::uint32_t> x,
                    std::span<std::uint32_t> y) {
    DeviceBuffer arguments(backend, x.size_bytes()), results(backend, y.size_bytes());
    arguments.upload(x.data());
    backend.run(kernels::FunctionProbe{f, static_cast<std::uint32_t>(x.size()),
                                       arguments.at<std::uint32_t>(), results.at<std::uint32_t>()});
    backend.synchronize();
    results.download(y.data());
  };
}

std::vector<FunctionCheck> check_functions(const FunctionDevice& device, std::uint32_t inputs) {
  // An odd multiplier visits every low half equally often, and every high half too.
  constexpr std::uint32_t kGolden = 0x9e3779b1;
  std::vector<std::uint32_t> x(inputs), y(inputs);
  for (std::uint32_t i = 0; i < inputs; ++i) x[i] = i * kGolden;

  std::vector<FunctionCheck> checks;
  for (std::size_t f = 0; f < std::size(kernels::kFunctionNames); ++f) {
    const auto function = static_cast<kernels::Function>(f);
    device(function, x, y);
    std::int64_t mismatches = 0;
    std::uint32_t first = inputs;
#pragma omp parallel for reduction(+ : mismatches) reduction(min : first)
    for (std::uint32_t i = 0; i < inputs; ++i)
      if (kernels::evaluate(function, x[i]) != y[i]) {
        ++mismatches;
        first = std::min(first, i);
      }
    checks.push_back(
        {kernels::kFunctionNames[f], inputs, mismatches, first < inputs ? x[first] : 0});
  }
  return checks;
}

}  // namespace numgate
