// Tables of cases: a line stands for every combination of the words of its columns.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/case_id.h"

namespace numgate {

struct CaseLine {
  const char *stage, *schedules, *plans, *families, *shapes;
};

// The words of a text, separated by spaces.
std::vector<std::string> words(const std::string& text);

// Raises UsageError where a combination is no case or its family does not apply to its stage.
std::vector<Case> expand(const CaseLine& line, std::uint64_t seed);

}  // namespace numgate
