// What is concluded about one cell: verdict, reasons, scores, growth, errors, curves. Data only.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/case_id.h"
#include "reports/verdict.h"

namespace numgate {

// Why a cell is not a plain PASS: measured > limit, at the first place where it is so.
struct Reason {
  std::string rule;                // verdict.h
  std::vector<std::string> sites;  // what to suspect
  std::optional<std::int32_t> rank;
  std::optional<std::int64_t> token;  // first token beyond the limit
  double measured = 0, limit = 0;     // the worst value, not the first
  std::string tensor;
  std::int64_t head = 0;
  std::string text;       // one sentence
  std::string waived_by;  // owner of the waiver that covers it, else empty
};

// A fitted exponent of token position or of context length, with its 99 % interval.
struct Slope {
  double value = 0, low = 0, high = 0;
  double at_end = 0;     // the fitted quantity at the longest position
  std::int64_t end = 0;  // that position, in tokens
};

struct ErrorSummary {
  double relative = 0, projected = 0;
  std::optional<Slope> slope;  // of log relative error over log t
};

// One window of a curve: relative to the window's truth, infinite where that is zero.
struct CurvePoint {
  std::int64_t token = 0;  // end of the window
  double error = 0, shadow = 0, score = 0;
};

struct Curve {
  std::int32_t rank = 0;
  std::vector<CurvePoint> points;  // at most 8 an octave
};

// Score and null draws of one final state: what growth by context is fitted to.
struct StateScore {
  std::string tensor;
  std::int64_t head = 0;
  std::int32_t rank = 0;
  double score = 0;
  std::vector<double> null_scores;  // by draw
};

struct TensorResult {
  std::string tensor;
  double score = 0, score_null = 0;        // largest W; the null's 99.9th percentile
  double token_score = 0, token_null = 0;  // largest X, likewise
  double excess = 0;
  double equivalence = 0, equivalence_null = 0;  // largest W_R, likewise (class R only)
  std::int64_t differing = 0;  // elements that differ from the control's (class E only)
  ErrorSummary error;
  // By draw: what error.relative would be if the error were that draw of the shadow.
  std::vector<double> error_null;
  std::optional<Slope> growth;  // G by position, of the worst head
  bool loose = false;
  std::int64_t curve_head = 0;  // the head with the largest W
  std::vector<Curve> curves;    // by rank
};

struct ScoreSummary {
  double max = 0;  // largest W of any tensor
  double token = 0, excess = 0;
};

struct Growth {
  std::optional<Slope> position, context;  // of the worst tensor and head
};

// Wall time by part, in seconds. What cells share counts for the first that needed it.
struct Timing {
  double inputs = 0, kernels = 0, truth = 0, shadow = 0;
  double judge = 0;  // measuring errors and judging them: whatever the others leave

  double total() const { return inputs + kernels + truth + shadow + judge; }
  Timing& operator+=(const Timing& other);
};

struct CellResult {
  Case c;
  Verdict verdict = Verdict::NOT_VERIFIED;
  std::vector<Reason> reasons;
  ErrorSummary error;  // of the worst tensor
  double budget = 0;   // that the error was held against
  ScoreSummary score;
  Growth growth;
  bool loose = false;  // vouches for nothing
  std::vector<TensorResult> tensors;
  std::vector<StateScore> states;
  double seconds = 0;
  Timing timing;
  std::string replay;  // command
  bool is_control = false, control_missed = false;
};

}  // namespace numgate
