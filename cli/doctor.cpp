#include "cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/device_check.h"
#include "cli/machine.h"
#include "reports/files.h"

namespace numgate {
namespace {

constexpr int kTiles = 8192;  // 1,048,576 outputs
constexpr std::uint32_t kInputs = 1u << 22;

void print_machine() {
  fmt::print("numgate {} ({}), {}\n{}\n", kToolVersion, git_commit(), compiler(), hardware());
  fmt::print("backend cpu: yes, kernels run as fibers and give the bits of an H200\n");
  try {
    const auto cuda = make_backend("cuda");
    fmt::print("backend cuda: yes, {}, {}\n", cuda->device(), cuda->driver());
  } catch (const UsageError& e) {
    fmt::print("backend cuda: no, {}\n", e.what());
  }
}

void print(const FormCheck& c) {
  if (!c.ran) {
    fmt::print("{:<32} not on this device or not in this build\n", name(c.form));
    return;
  }
  fmt::print("{:<32} {} outputs, {} mismatches\n", name(c.form), c.outputs, c.wrong());
  for (int i = 0; i < tensor_core::kInputClasses; ++i)
    if (c.mismatches[static_cast<std::size_t>(i)])
      fmt::print("    {:<20} {}\n", name(static_cast<tensor_core::InputClass>(i)),
                 c.mismatches[static_cast<std::size_t>(i)]);
  for (const std::string& d : c.differences) fmt::print("    this device {}\n", d);
  if (c.unexplained)
    fmt::print("    {} mismatches are left: no rules that are known explain this device\n",
               c.unexplained);
  if (c.models_differ)
    fmt::print("    the fast model and the integer model differ in {} outputs\n", c.models_differ);
}

nlohmann::ordered_json json(const FormCheck& c) {
  nlohmann::ordered_json classes;
  for (int i = 0; i < tensor_core::kInputClasses; ++i)
    classes[name(static_cast<tensor_core::InputClass>(i))] =
        c.mismatches[static_cast<std::size_t>(i)];
  return {{"name", name(c.form)},
          {"ran", c.ran},
          {"outputs", c.outputs},
          {"mismatches", c.wrong()},
          {"classes", classes},
          {"models_differ", c.models_differ},
          {"differences", c.differences},
          {"unexplained", c.unexplained},
          {"valid", c.valid()}};
}

}  // namespace

ExitCode doctor(const std::string& backend_name, const std::string& out) {
  print_machine();
  const auto backend = make_backend(backend_name);
  fmt::print("\nchecking {} ({}, {})\n", backend->device(), backend->driver(), backend->toolkit());

  bool valid = true;
  nlohmann::ordered_json forms, functions;
  for (const Form& form : tensor_core_forms()) {
    const FormCheck check = check_form(form, device_of(*backend), kTiles);
    print(check);
    valid &= check.valid();
    forms.push_back(json(check));
  }
  for (const FunctionCheck& check : check_functions(functions_of(*backend), kInputs)) {
    fmt::print("{:<32} {} inputs, {} mismatches\n", check.name, check.inputs, check.mismatches);
    if (check.mismatches) fmt::print("    the first at {:08x}\n", check.first_mismatch);
    valid &= check.mismatches == 0;
    functions.push_back({{"name", check.name},
                         {"inputs", check.inputs},
                         {"mismatches", check.mismatches},
                         {"valid", check.mismatches == 0}});
  }
  fmt::print("{}\n", valid ? "valid: this backend computes what the model says"
                           : "NOT VALID: digests and declared roundings do not hold here");
  if (!out.empty()) {
    const nlohmann::ordered_json record{{"device", backend->device()},
                                        {"driver", backend->driver()},
                                        {"toolkit", backend->toolkit()},
                                        {"commit", git_commit()},
                                        {"command", "numgate doctor --backend " + backend_name},
                                        {"forms", forms},
                                        {"functions", functions},
                                        {"valid", valid}};
    write_file_atomically(out, record.dump(1) + "\n");
  }
  return valid ? ExitCode::pass : ExitCode::oracle_invalid;
}

}  // namespace numgate
