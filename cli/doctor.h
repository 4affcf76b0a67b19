// What this machine can run.
#pragma once
#include "core/errors.h"

namespace numgate {

// Prints the machine, the backends and the result of the tensor-core self-check. Not a pass where
// the check fails.
ExitCode doctor();

}  // namespace numgate
