// `numgate oracle`: how fast an engine reads the truth of a whole layer, and how right it is.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace numgate {

struct OracleOptions {
  std::string backend = "cuda";
  std::string family = "needle";
  std::int64_t tokens = std::int64_t{1} << 20, heads = 64;  // K = V = 128
  // Inputs are generated for the first tokens alone, rounded up to whole slabs, and repeated; 0:
  // for all tokens.
  std::int64_t period = 0;
  std::int64_t compared_tokens = 16384, compared_heads = 4;  // at most; with the CPU's truth
  int audit_threads = 0;                                     // TruthOptions::audit_threads
  std::string command;                                       // for the record
  std::filesystem::path out;                                 // may be empty
};

// Walks kda.prefill in slabs, nothing kept, audited in MPFR over the whole length; on `cuda` also
// compares a part of it, element by element, with the CPU's truth. Prints a summary and writes a
// record: {device, driver, toolkit, commit, command, family, heads, tokens, K, V, period, seconds,
// multiply_adds_per_second, audit, cpu_comparison}. Of `seconds`, truth is the time in which a
// kernel ran, prepare, walk and bound are its parts (they overlap), audit is the slowest column's.
// Raises UsageError: backend, family or shape. OracleError: an audit fails, or the two truths
// differ by more than the sum of their radii.
void run_oracle(const OracleOptions& options);

}  // namespace numgate
