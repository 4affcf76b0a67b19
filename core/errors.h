// What can go wrong, and the exit code that says so.
#pragma once
#include <stdexcept>
#include <string>

namespace numgate {

enum class ExitCode : int {
  pass = 0,
  usage = 1,  // malformed ids, plans, policies, reports; unsupported shapes; unwritable --out
  gate_violated = 2,
  timeout = 3,
  oracle_invalid = 4,  // the oracle, a control or the baseline cannot be trusted
  incomplete = 5,      // cells not run or not verified, nothing compared
  internal = 70,
};

// Bad input. The message is one line that names the field and the value.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
  UsageError(const std::string& field, const std::string& value, const std::string& why)
      : std::runtime_error(field + " '" + value + "': " + why) {}
};

// The truth cannot be trusted (audit or radius failed); nothing was verified.
struct OracleError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A kernel broke a rule of its machine: divergent barrier, shared memory out of bounds.
struct KernelError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace numgate
