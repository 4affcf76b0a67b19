// Commands on one case: export, judge, explain.
#pragma once
#include <filesystem>
#include <string>

#include "core/case_id.h"
#include "reports/result.h"

namespace numgate {

struct SingleCaseOptions {
  std::string backend = "cpu";
  std::int64_t target_context = 0;
  bool quiet = false;
};

// Writes case.json and tensors.safetensors: inputs, the kernel's outputs, truth as .hi and .lo,
// radius and shadow.
void export_case(const Case& c, const std::filesystem::path& out, const SingleCaseOptions& options);

// Judges outputs that anything else computed from the exported inputs. Raises UsageError where the
// file lacks an output, where shapes differ, or where inputs in the file are not the case's.
CellResult judge_tensors(const Case& c, const std::filesystem::path& file,
                         const SingleCaseOptions& options);

// What each misdeclared site costs, what each site contributes to the shadow, and where the error
// first shows.
std::string explain_case(const Case& c, const SingleCaseOptions& options);

}  // namespace numgate
