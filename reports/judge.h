// The verdict of a cell (DESIGN 6), from what the campaign measured.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/case_id.h"
#include "core/profile.h"
#include "reports/policy.h"
#include "reports/result.h"

namespace numgate {

struct Health {
  std::vector<std::string>
      failures;     // poison found, guard zone touched, two runs differ, KernelError, ...
  bool ran = true;  // false: the kernel did not come to its end
};

struct CellEvidence {
  Case c;
  // A tensor with kernel.row_excess was seen only after its cast: excess takes the place of W, X
  // and growth. An empty schedule_shadow stands for `shadow`, which is right only where the
  // declared plan has its schedule-only sites at ieee already.
  std::vector<TensorProfile> tensors;
  Health health;
  bool live = true;  // the family constructed its mechanism
  std::string not_live_reason;
  bool oracle_valid = true;  // audit and radius held
  std::string oracle_failure;
  double seconds = 0;
};

// Judges everything but growth by context, waivers and controls; those need the other cells
// (conclude()). Raises std::logic_error where vectors that should be parallel are not.
CellResult judge(const CellEvidence& evidence, const Policy& policy);

// A cell without evidence: timed out, failed inside numgate, never run. `rule` as in verdict.h.
CellResult unjudged(const Case& c, std::string_view rule, std::string text, double seconds = 0);

// The verdict that the reasons without a waiver add up to.
void settle(CellResult& cell);

// One final state of a ladder of T.
struct LadderPoint {
  std::int64_t tokens = 0;
  double score = 0;
  std::vector<double> null_scores;  // by draw
};
// Slope of log max(W, 1) over log T; none with fewer than three points.
std::optional<Slope> growth_context(std::vector<LadderPoint> ladder);

// Fills growth.context of all cells that differ in T alone, and applies the growth rule to it.
void judge_ladders(std::vector<CellResult>& cells, const Policy& policy);

// Marks the reasons that the policy waives and recomputes the verdict.
void apply_waivers(CellResult& cell, const Policy& policy);

// The cell must fail, for all of `rules`: then it is CAUGHT, else control_missed is set.
void apply_control(CellResult& cell, const std::vector<std::string>& rules);

}  // namespace numgate
