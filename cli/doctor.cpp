#include "cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/device_check.h"
#include "cli/machine.h"
#include "reports/files.h"

namespace numgate {
namespace {

// Whether it has CUDA.
bool print_machine() {
  fmt::print("numgate {} ({}), {}\n{}\n", kToolVersion, git_commit(), compiler(), hardware());
  fmt::print("backend cpu: yes, kernels run as fibers and give the bits of an H200\n");
  try {
    const auto cuda = make_backend("cuda");
    fmt::print("backend cuda: yes, {}, {}\n", cuda->device(), cuda->driver());
    return true;
  } catch (const UsageError& e) {
    fmt::print("backend cuda: no, {}\n", e.what());
    return false;
  }
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

ExitCode doctor(const DoctorOptions& options) {
  const bool cuda = print_machine();
  const std::string name = !options.backend.empty() ? options.backend : cuda ? "cuda" : "cpu";
  const auto backend = make_backend(name);
  fmt::print("\nchecking {} ({}, {})\n", backend->device(), backend->driver(), backend->toolkit());

  bool valid = true;
  int ran = 0;
  nlohmann::ordered_json forms, functions;
  for (const Form& form : tensor_core_forms()) {
    const FormCheck check = check_form(form, device_of(*backend), options.tiles);
    fmt::print("{}", describe(check));
    valid &= check.valid();
    ran += check.ran;
    forms.push_back(json(check));
  }
  for (const FunctionCheck& check : check_functions(functions_of(*backend), options.inputs)) {
    fmt::print("{:<32} {} inputs, {} mismatches\n", check.name, check.inputs, check.mismatches);
    if (check.mismatches) fmt::print("    the first at {:08x}\n", check.first_mismatch);
    valid &= check.mismatches == 0;
    functions.push_back({{"name", check.name},
                         {"inputs", check.inputs},
                         {"mismatches", check.mismatches},
                         {"valid", check.mismatches == 0}});
  }
  fmt::print("{} of {} tensor-core forms and {} functions checked: {}\n", ran, forms.size(),
             functions.size(),
             valid ? "this backend computes what the model says"
                   : "NOT VALID, digests and declared roundings do not hold here");
  if (!options.out.empty()) {
    const nlohmann::ordered_json record{{"device", backend->device()},
                                        {"driver", backend->driver()},
                                        {"toolkit", backend->toolkit()},
                                        {"commit", git_commit()},
                                        {"command", "numgate doctor --backend " + name},
                                        {"forms", forms},
                                        {"functions", functions},
                                        {"valid", valid}};
    write_file_atomically(options.out, record.dump(1) + "\n");
  }
  return valid ? ExitCode::pass : ExitCode::oracle_invalid;
}

}  // namespace numgate
