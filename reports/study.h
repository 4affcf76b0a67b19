// Distributions over seeds: what the thresholds and budgets of the policy rest on.
#pragma once
#include <string>
#include <vector>

#include "reports/report.h"

namespace numgate {

// JSON: for each stage, schedule, plan and family of healthy cells the distributions (minimum,
// median, 99th percentile, maximum, number of cells) of score W, token score X, equivalence W_R,
// growth G and relative error, with the number of cells that each rule failed.
std::string study_json(const std::vector<Report>& reports);

}  // namespace numgate
