// This build and this machine, in words.
#pragma once
#include <memory>
#include <string>

#include "kernels/backend.h"

namespace numgate {

inline constexpr const char* kToolVersion = NUMGATE_VERSION;

std::string git_commit();  // of the source tree that was built
std::string hardware();    // processor, cores, memory
std::string compiler();
std::string utc_now();  // ISO 8601

// `cpu` or `cuda`. Raises UsageError for another name or a backend that this build or machine
// lacks.
std::unique_ptr<kernels::Backend> make_backend(const std::string& name);

}  // namespace numgate
