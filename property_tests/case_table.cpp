#include "property_tests/case_table.h"

#include <sstream>

#include "property_tests/families.h"

namespace numgate {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string w; in >> w;) out.push_back(w);
  return out;
}

std::vector<Case> expand(const CaseLine& line, std::uint64_t seed) {
  std::vector<Case> cases;
  for (const auto& schedule : words(line.schedules))
    for (const auto& plan : words(line.plans))
      for (const auto& family : words(line.families))
        for (const auto& shape : words(line.shapes)) {
          cases.push_back(parse_case(std::string(line.stage) + "/" + schedule + "/" + plan + "/" +
                                     family + "/" + shape + "/seed=" + std::to_string(seed)));
          check_family(cases.back());
        }
  return cases;
}

}  // namespace numgate
