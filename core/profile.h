// What the campaign measures and the reports judge: sums over windows and rows. Data only.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace numgate {

// A window: consecutive rows of one tensor, head and rank that share one score. For sequence
// outputs rows are tokens [begin, end) of 64 (a remainder below 8 joins its predecessor), counted
// from the start of the rank's segment. A final state is one window per head and sequence: begin =
// end = the token after which it stands, rank the sequence's index.
struct WindowKey {
  std::int64_t head = 0, begin = 0, end = 0;
  std::int32_t rank = 0;
};

inline constexpr int kMaxDraws = 16;

// Shadow of one window: sum of squared errors of each draw, by mode (0: I, 1: D), floor included.
struct ShadowWindow {
  std::array<std::array<double, kMaxDraws>, 2> squares{};
};

// Shadow of one output tensor under one declared plan and one form.
struct TensorShadow {
  int draws = 0;
  std::vector<ShadowWindow> windows;  // parallel to TensorProfile::keys
  std::array<std::vector<float>, 2>
      row_max;  // [token * heads + head]: mean over draws of max |error|, floor included
  // Null of the token score: the 99.9th percentile over all rows and draws of
  // max|error of a draw| / mean over the other draws of max|error|, in the mode that row_max keeps.
  double row_null = 0;
};

// Error of one run of a kernel on one output tensor.
struct TensorError {
  std::vector<double> squares;    // by window: sum of squared errors
  std::vector<float> row_max;     // [token * heads + head]: max |error|; empty for states
  std::vector<float> row_excess;  // same indexing, only where the output was judged after its cast
  std::int64_t nonfinite = 0;     // elements non-finite where truth is finite
};

// Everything known about one output tensor of a cell.
struct TensorProfile {
  std::string tensor;  // "o", "state", "fold", ...
  bool is_state = false;
  std::int64_t heads = 1;
  std::vector<WindowKey> keys;
  std::vector<double> truth_squares;  // by window: sum of squared truth
  TensorShadow shadow;                // of the declared plan
  TensorError kernel;
  // Equivalence: the control schedule's error (empty where the cell is its own control) and the
  // shadow of the declared plan with the schedule's own sites at ieee.
  TensorError control;
  TensorShadow schedule_shadow;
  std::int64_t differing_bits = 0;  // elements that differ from the control's, for class E
  bool has_control = false;
};

}  // namespace numgate
