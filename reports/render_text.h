// What the renderers share: words for verdicts, the matrix, the order of failures.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/report.h"
#include "reports/text.h"

namespace numgate {

std::string verdict_words(Verdict v);  // `NOT VERIFIED`
std::string join(const std::vector<std::string>& words, std::string_view separator);
std::string place_text(const Reason& reason);  // `rank 7, token 5,120`, or empty

// The verdict as a sentence, and what it rests on: verified, controls, not verified.
std::string headline(const Report& report);
struct Findings {
  std::string verified, controls, not_verified;
};
Findings findings(const Report& report);

// The reason with the largest measured / limit; null where there is none.
const Reason* worst_reason(const CellResult& cell);
// Cells that count against the report, worst first.
std::vector<const CellResult*> failures(const Report& report);

// What a report says of one schedule and family, over plans, shapes and seeds; controls apart.
struct MatrixEntry {
  const CellResult* worst = nullptr;  // null where only controls ran
  double score = 0;
  int cells = 0, loose = 0, caught = 0, controls = 0;
};
struct Matrix {
  std::vector<std::pair<std::string, std::string>> rows;  // stage, schedule
  std::vector<std::string> families;
  std::map<std::pair<std::size_t, std::size_t>, MatrixEntry> entries;  // by row and family
};
Matrix matrix(const Report& report);

// Cells that differ in T alone, at least two, shortest first.
std::vector<std::vector<const CellResult*>> ladders(const Report& report);

}  // namespace numgate
