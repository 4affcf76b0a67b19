// What this machine can run.
#pragma once
#include <string>

#include "core/errors.h"

namespace numgate {

// Prints the machine, the backends, and what the check of one backend found: the tensor core's
// instructions, the elementary functions and the conversions against the model, over a million
// inputs each. Writes a record to `out` unless it is empty. ExitCode::oracle_invalid where the
// check fails. Raises UsageError for a backend that this machine or build lacks or an unwritable
// file.
ExitCode doctor(const std::string& backend, const std::string& out);

}  // namespace numgate
