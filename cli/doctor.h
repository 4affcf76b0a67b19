// What this machine can run.
#pragma once
#include <cstdint>
#include <string>

#include "core/errors.h"

namespace numgate {

struct DoctorOptions {
  std::string backend;              // to check; empty: cuda where there is one, else cpu
  std::string out;                  // file for the record, or empty
  int tiles = 8192;                 // of each tensor-core form, a multiple of 4; 1,048,576 outputs
  std::uint32_t inputs = 1u << 22;  // of each function
};

// Prints the machine, the backends, and what the check of one backend found: the tensor core's
// instructions, the elementary functions and the conversions against the model.
// ExitCode::oracle_invalid where it finds a difference. Raises UsageError for a backend that this
// machine or build lacks or an unwritable file.
ExitCode doctor(const DoctorOptions& options);

}  // namespace numgate
