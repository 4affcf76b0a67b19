// What a device computes against what this repository says it computes: the tensor core's
// instructions against their model, the elementary functions and the conversions against this
// machine's processor.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/simt/tensor_core_inputs.h"

namespace numgate {

struct Form {
  tensor_core::Type type;
  tensor_core::Unit unit;
};
std::string name(const Form& f);  // "mma.sync m16n8k16 bf16"
std::vector<Form> tensor_core_forms();

struct FormCheck {
  Form form;
  bool ran = false;  // the device and this build have the instruction
  std::int64_t outputs = 0;
  std::array<std::int64_t, tensor_core::kInputClasses> mismatches{};  // of the device, by class
  std::int64_t models_differ = 0;  // outputs on which the fast model and the integer model differ
  // Where there are mismatches: what the rules that explain the device's outputs differ in, and the
  // mismatches that are left under them.
  std::vector<std::string> differences;
  std::int64_t unexplained = 0;

  std::int64_t wrong() const;
  bool valid() const { return wrong() == 0 && models_differ == 0; }
};

// Writes D of every tile; false where the device has no such instruction.
using Device = std::function<bool(const Form&, std::span<tensor_core::Tile>)>;
Device device_of(kernels::Backend& backend);

// 128 outputs a tile; `tiles` is a multiple of 4.
FormCheck check_form(const Form& form, const Device& device, int tiles);

// In words for a person: a line, and what is wrong below it.
std::string describe(const FormCheck& check);

struct FunctionCheck {
  std::string name;
  std::int64_t inputs = 0, mismatches = 0;
  std::uint32_t first_mismatch = 0;  // its argument's bits
};

// Writes the results y of the arguments x.
using FunctionDevice = std::function<void(kernels::Function, std::span<const std::uint32_t> x,
                                          std::span<std::uint32_t> y)>;
FunctionDevice functions_of(kernels::Backend& backend);

// `inputs` words spread evenly over all 2^32, for every function.
std::vector<FunctionCheck> check_functions(const FunctionDevice& device, std::uint32_t inputs);

}  // namespace numgate
