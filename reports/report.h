// The report of a campaign, its verdict, its exit code and its JSON form.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "reports/policy.h"
#include "reports/result.h"

namespace numgate {

inline constexpr std::string_view kReportSchemaVersion = "1.1";

// A case that must fail.
struct Control {
  std::string glob;                // or full id
  std::vector<std::string> rules;  // all of these must be among its reasons
  std::string why;                 // the fault it plants, in words
  // Filled by conclude(). Neither is set where its cells did not run to their end.
  bool caught = false;  // every cell that it names failed for these rules
  bool missed = false;  // one passed, or failed without them
};

struct Report {
  std::string tool_version, command, profile, backend, git_commit;
  std::string hardware, compiler;
  std::string device, driver, toolkit;  // that the kernels ran on, and what compiled them
  std::string started;                  // ISO 8601, UTC
  double seconds = 0;
  Policy policy;  // with the target context
  std::vector<CellResult> cells;
  std::vector<Control> controls;  // empty when a glob chose the cells
  Verdict verdict = Verdict::NOT_VERIFIED;
};

// Call once, when all cells are in, with policy and controls set: ladders, controls, waivers (never
// on controls), and the report's verdict. Cells must come straight from judge() or parse_cell().
void conclude(Report& report);

// 4 before 70 before the code of the verdict: a gate whose control or oracle failed says nothing.
ExitCode exit_code(const Report& report);

// Each cell on a line of its own.
std::string to_json(const Report& report);
// Parts of all cells together, those of an earlier sitting included.
Timing timing(const Report& report);
// Without the curves of cells that passed, which no page draws: most of a report's size.
Report trimmed(Report report);
// Raises UsageError naming the field: truncated, malformed, another major schema version.
Report parse_report(std::string_view text);

// One cell on one line, for checkpoints; parse_cell(to_json(cell)) loses nothing.
std::string to_json(const CellResult& cell);
CellResult parse_cell(std::string_view text);

// Text of reports/schema/report-1.schema.json.
std::string_view report_schema();

}  // namespace numgate
