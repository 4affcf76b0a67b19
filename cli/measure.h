// From an observation and the truth to the sums that the reports judge.
#pragma once
#include "core/case_id.h"
#include "core/profile.h"
#include "core/tensor.h"
#include "oracles/truth.h"

namespace numgate {

// How an output tensor is cut into rows and windows.
struct OutputLayout {
  bool is_state = false;   // final state or segment map: one window a head and sequence
  std::int64_t heads = 1;  // rows a token
  std::int64_t width = 1;  // elements a row
  std::vector<WindowKey> keys;
};

OutputLayout output_layout(const Case& c, const std::string& tensor,
                           const std::vector<std::int64_t>& shape);

// Sums of squared truth by window.
std::vector<double> truth_squares(const OutputLayout& layout, const TruthTensor& truth);

// Error of `seen` (f32, f64, or bf16) by window and row.
TensorError measure(const OutputLayout& layout, const Tensor& seen, const TruthTensor& truth);

// Excess of a bf16 output by row (DESIGN 1): the largest distance from truth to the rounding cell
// of the output, over the window's root mean square shadow.
std::vector<float> measure_excess(const OutputLayout& layout, const Tensor& seen,
                                  const TruthTensor& truth, const TensorShadow& shadow);

// Largest over windows of (root sum of squared radius) / (root of the shadow's mean square); DESIGN
// 7 wants < 2^-20.
double radius_over_shadow(const OutputLayout& layout, const TruthTensor& truth,
                          const TensorShadow& shadow);

// Root mean square of the shadow of one element, by row.
std::vector<double> shadow_rms(const OutputLayout& layout, std::int64_t rows,
                               const TensorShadow& shadow);

std::int64_t differing_elements(const Tensor& a, const Tensor& b);

}  // namespace numgate
