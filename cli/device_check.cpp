#include "cli/device_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/simt/tensor_core_search.h"

namespace numgate {
namespace {

namespace tc = tensor_core;

// Memory of a backend.
template <class T>
class DeviceArray {
 public:
  DeviceArray(kernels::Backend& backend, std::size_t count)
      : backend_(backend), data_(static_cast<T*>(backend.allocate(count * sizeof(T)))) {}
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { backend_.release(data_); }

  T* data() const { return data_; }
  void write(std::span<const T> host) { backend_.copy_in(data_, host.data(), host.size_bytes()); }
  void read(std::span<T> host) const { backend_.copy_out(host.data(), data_, host.size_bytes()); }

 private:
  kernels::Backend& backend_;
  T* data_;
};

}  // namespace

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
    DeviceArray<tc::Tile> on_device(backend, tiles.size());
    DeviceArray<std::uint32_t> ran_on_device(backend, 1);
    std::uint32_t ran = 0;
    on_device.write(tiles);
    ran_on_device.write({&ran, 1});
    backend.run(kernels::TensorCoreProbe{form.type, form.unit, static_cast<int>(tiles.size()),
                                         on_device.data(), ran_on_device.data()});
    backend.synchronize();
    on_device.read(tiles);
    ran_on_device.read({&ran, 1});
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

FunctionDevice functions_of(kernels::Backend& backend) {
  return [&backend](kernels::Function f, std::span<const std::uint32_t> x,
                    std::span<std::uint32_t> y) {
    DeviceArray<std::uint32_t> arguments(backend, x.size()), results(backend, y.size());
    arguments.write(x);
    backend.run(kernels::FunctionProbe{f, static_cast<std::uint32_t>(x.size()), arguments.data(),
                                       results.data()});
    backend.synchronize();
    results.read(y);
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
