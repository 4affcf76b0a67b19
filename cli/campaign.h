// A campaign: many cases run, judged and reported.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "reports/report.h"

namespace numgate {

struct CampaignOptions {
  std::string profile = "quick", backend = "cpu", command;
  std::string oracle;  // where truth and shadow are computed; empty: as the backend
  std::vector<std::string> globs;
  std::filesystem::path out = "out";
  std::string policy_file;  // empty: the compiled-in policy
  std::int64_t seeds = 1;
  std::int64_t target_context = 0;  // 0: the policy's
  int jobs = 0;                     // 0: every processor
  double timeout = 0;               // seconds, 0: none; cells not started by then are TIMEOUT
  bool resume = false, quiet = false;
};

// Runs the campaign and writes report.json, report.html, junit.xml and summary.md under `out`;
// finished cells go to out/cells.jsonl as they come, where --resume finds them. Raises UsageError
// before any work.
Report run_campaign(const CampaignOptions& options);

// What the campaign would run, in order, with the seconds that each cell is expected to take
// (cli/cost.h), and their sum.
void print_plan(const CampaignOptions& options);

// The four files.
void write_report(const Report& report, const std::filesystem::path& out);

}  // namespace numgate
