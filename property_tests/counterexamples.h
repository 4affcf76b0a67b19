// Saved failures: one case id a file, replayed by every test run.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/case_id.h"

namespace numgate {

// The cases of `dir`'s .txt files, by file name. The first line of a file is the id; what follows
// is prose. Raises UsageError, with the file's name, for one that does not parse.
std::vector<Case> saved_counterexamples(const std::filesystem::path& dir);

// Writes the case under a name made of its id (so the same case is saved once) and returns the
// file's path.
std::filesystem::path save_counterexample(const std::filesystem::path& dir, const Case& c,
                                          const std::string& why);

}  // namespace numgate
