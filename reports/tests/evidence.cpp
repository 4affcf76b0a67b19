#include "reports/tests/evidence.h"

#include <cmath>
#include <stdexcept>

#include "core/windows.h"
#include "reports/score.h"

namespace numgate {
namespace {

void fill(TensorProfile& tensor, const std::function<double(const WindowKey&)>& score) {
  tensor.shadow.draws = 8;
  for (std::size_t i = 0; i < tensor.keys.size(); ++i) {
    ShadowWindow window;
    for (int d = 0; d < tensor.shadow.draws; ++d) {
      window.squares[1][d] = 1 + 0.01 * static_cast<double>((d * 5 + i * 3) % 8);
      window.squares[0][d] = 0.5 * window.squares[1][d];
    }
    tensor.shadow.windows.push_back(window);
    const double explained = mean_square(window, tensor.shadow.draws);
    tensor.truth_squares.push_back(explained / (kShadowError * kShadowError));
    const double w = score(tensor.keys[i]);
    tensor.kernel.squares.push_back(explained * w * w);
  }
}

}  // namespace

TensorProfile sequence_profile(const Case& c, std::int64_t heads,
                               const std::function<double(const WindowKey&)>& score) {
  TensorProfile tensor;
  tensor.tensor = "o";
  tensor.heads = heads;
  tensor.keys = token_windows(c, heads);
  fill(tensor, score);
  const auto rows = static_cast<std::size_t>(c.shape.T * heads);
  tensor.shadow.row_max = {std::vector<float>(rows, 0.25f), std::vector<float>(rows, 0.5f)};
  tensor.shadow.row_null = 2;
  tensor.kernel.row_max.assign(rows, 0.5f);
  return tensor;
}

TensorProfile state_profile(const Case& c, std::int64_t heads, double score) {
  TensorProfile tensor;
  tensor.tensor = "state";
  tensor.is_state = true;
  tensor.heads = heads;
  tensor.keys = state_windows(c, heads);
  fill(tensor, [score](const WindowKey&) { return score; });
  return tensor;
}

void add_control(TensorProfile& tensor, double error, double shadow) {
  tensor.has_control = true;
  tensor.schedule_shadow = tensor.shadow;
  for (std::size_t i = 0; i < tensor.keys.size(); ++i) {
    for (auto& mode : tensor.schedule_shadow.windows[i].squares)
      for (double& square : mode) square *= shadow * shadow;
    tensor.control.squares.push_back(mean_square(tensor.shadow.windows[i], tensor.shadow.draws) *
                                     error * error);
  }
}

CellEvidence healthy(const std::string& id) {
  CellEvidence evidence;
  evidence.c = parse_case(id);
  evidence.tensors = {
      sequence_profile(evidence.c, evidence.c.shape.HV, [](const WindowKey&) { return 1.0; }),
      state_profile(evidence.c, evidence.c.shape.HV, 1)};
  if (evidence.c.schedule.kind != ScheduleKind::sequential)
    for (TensorProfile& tensor : evidence.tensors) add_control(tensor, 1, 1);
  return evidence;
}

bool has_rule(const CellResult& cell, const std::string& rule) {
  for (const Reason& r : cell.reasons)
    if (r.rule == rule) return true;
  return false;
}

Reason reason(const CellResult& cell, const std::string& rule) {
  for (const Reason& r : cell.reasons)
    if (r.rule == rule) return r;
  throw std::out_of_range("no reason of rule " + rule);
}

}  // namespace numgate
