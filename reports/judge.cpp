#include "reports/judge.h"

#include <algorithm>
#include <utility>

#include "reports/tensor_judge.h"

namespace numgate {
namespace {

Reason plain(std::string rule, std::string text) {
  Reason reason;
  reason.rule = std::move(rule);
  reason.text = std::move(text);
  return reason;
}

CellResult empty_cell(const Case& c, double seconds) {
  CellResult cell;
  cell.c = c;
  cell.seconds = seconds;
  cell.replay = "numgate replay '" + c.id() + "'";
  return cell;
}

// The largest of each over the tensors.
void summarise(CellResult& cell) {
  bool scored = false;
  for (const TensorResult& t : cell.tensors) {
    cell.score.max = std::max(cell.score.max, t.score);
    cell.score.token = std::max(cell.score.token, t.token_score);
    cell.score.excess = std::max(cell.score.excess, t.excess);
    scored = scored || t.score_null > 0;
    if (t.growth && (!cell.growth.position || t.growth->low > cell.growth.position->low))
      cell.growth.position = t.growth;
    if (&t == &cell.tensors.front() || t.error.projected > cell.error.projected) {
      cell.error.projected = t.error.projected;
      cell.error.slope = t.error.slope;
    }
    cell.error.relative = std::max(cell.error.relative, t.error.relative);
  }
  cell.loose =
      scored && std::all_of(cell.tensors.begin(), cell.tensors.end(),
                            [](const TensorResult& t) { return t.loose || t.score_null == 0; });
}

}  // namespace

CellResult judge(const CellEvidence& evidence, const Policy& policy) {
  CellResult cell = empty_cell(evidence.c, evidence.seconds);
  cell.budget = policy.budget(evidence.c.plan.text(), evidence.c.family).value;
  for (const std::string& failure : evidence.health.failures)
    cell.reasons.push_back(plain("health", failure));
  if (!evidence.health.ran)
    cell.reasons.push_back(plain("health", "the kernel did not come to its end"));
  if (!evidence.oracle_valid)
    cell.reasons.push_back(plain("oracle", evidence.oracle_failure.empty()
                                               ? "the truth failed its audit or its radius"
                                               : evidence.oracle_failure));
  if (!evidence.live)
    cell.reasons.push_back(plain("liveness", evidence.not_live_reason.empty()
                                                 ? "the inputs do not construct their mechanism"
                                                 : evidence.not_live_reason));

  bool controlled = evidence.c.schedule.kind == ScheduleKind::sequential ||
                    equivalence(evidence.c.schedule) == Equivalence::Q;
  for (const TensorProfile& tensor : evidence.tensors) {
    judge_tensor(evidence.c, tensor, policy, cell);
    controlled = controlled || tensor.has_control;
  }
  if (evidence.health.ran && evidence.oracle_valid) {
    if (evidence.tensors.empty())
      cell.reasons.push_back(plain("coverage", "nothing was compared"));
    else if (!controlled)
      cell.reasons.push_back(plain("coverage", "not compared with the sequential schedule"));
  }
  summarise(cell);
  settle(cell);
  return cell;
}

CellResult unjudged(const Case& c, std::string_view rule, std::string text, double seconds) {
  CellResult cell = empty_cell(c, seconds);
  cell.reasons.push_back(plain(std::string(rule), std::move(text)));
  settle(cell);
  return cell;
}

void settle(CellResult& cell) {
  cell.verdict = Verdict::PASS;
  for (const Reason& reason : cell.reasons)
    if (reason.waived_by.empty())
      cell.verdict = std::max(cell.verdict, verdict_of_rule(reason.rule));
}

}  // namespace numgate
