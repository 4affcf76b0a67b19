#include "property_tests/counterexamples.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "core/errors.h"
#include "property_tests/random_stream.h"

namespace numgate {

std::vector<Case> saved_counterexamples(const std::filesystem::path& dir) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const auto& file : files) {
    std::string id;
    std::getline(std::ifstream(file) >> std::ws, id);
    try {
      cases.push_back(parse_case(id));
    } catch (const UsageError& e) {
      throw UsageError("counterexample", file.filename().string(), e.what());
    }
  }
  return cases;
}

std::filesystem::path save_counterexample(const std::filesystem::path& dir, const Case& c,
                                          const std::string& why) {
  char digest[17];
  std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(hash_of(c.id())));
  const auto path = dir / (c.stage + "-" + digest + ".txt");
  std::ofstream out(path);
  out << c.id() << '\n' << why << '\n';
  if (!out.flush()) throw UsageError("counterexample", path.string(), "cannot be written");
  return path;
}

}  // namespace numgate
