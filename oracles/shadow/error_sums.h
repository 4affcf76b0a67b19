// Errors of the draws against truth, reduced as they are made to sums over windows and maxima over
// rows.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/case_id.h"
#include "core/large_vector.h"
#include "core/profile.h"
#include "oracles/forms/matrix.h"
#include "oracles/shadow/row_error.h"
#include "oracles/truth.h"

namespace numgate::shadow {

// Whether an output of c.stage has rows by token; the others are states and maps.
bool has_tokens(const Case& c, std::string_view tensor);

class ErrorSums {
 public:
  // `tensor` of c.stage, or `fold`, which is judged against the truth of `state`.
  ErrorSums(const Case& c, std::string_view tensor, const Truth& truth, int draws);

  // Rows [first, first + rows.rows()) of `head` in one draw; for states the whole state of sequence
  // `first`. Calls for different (mode, draw, head) may run at the same time.
  void add(int mode, int draw, std::int64_t head, std::int64_t first,
           const forms::Matrix<double>& rows);

  // The same for one row, whose error is known.
  void add_row(int mode, int draw, std::int64_t head, std::int64_t at, const RowError& error);

  // Mean over draws of the summed squares, without the floor, in the mode where it is larger.
  double mean_square() const;
  TensorShadow finish() &&;

 private:
  const TruthTensor& truth_;
  bool is_state_;
  std::int64_t heads_, width_;
  int draws_;
  std::vector<std::int32_t> window_of_;  // by token, of head 0
  std::int64_t windows_per_head_ = 0;
  std::vector<ShadowWindow> windows_, raw_;
  std::vector<LargeVector<float>> row_max_;  // [mode * draws + draw][token * heads + head]
};

}  // namespace numgate::shadow
