#include "cli/measure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/windows.h"
#include "kernels/formats/formats.h"

namespace numgate {
namespace {

// Rows of window `w`: first row, number of rows and the step from one to the next.
struct Rows {
  std::int64_t first, count, step;
};
Rows rows_of(const OutputLayout& layout, std::size_t w) {
  const WindowKey& key = layout.keys[w];
  if (layout.is_state) return {static_cast<std::int64_t>(w), 1, 1};
  return {key.begin * layout.heads + key.head, key.end - key.begin, layout.heads};
}

double mean_square(const TensorShadow& shadow, std::size_t w) {
  double larger = 0;
  for (const auto& mode : shadow.windows[w].squares)
    larger = std::max(
        larger, std::accumulate(mode.begin(), mode.begin() + shadow.draws, 0.0) / shadow.draws);
  return larger;
}

}  // namespace

OutputLayout output_layout(const Case& c, const std::string& tensor,
                           const std::vector<std::int64_t>& shape) {
  OutputLayout layout;
  const auto width_of = [&](std::size_t leading) {
    return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(leading), shape.end(),
                           std::int64_t{1}, std::multiplies<>());
  };
  layout.is_state = tensor == "state" || tensor == "fold" || tensor == "M" || tensor == "B";
  if (layout.is_state) {
    layout.heads = c.shape.HV;
    layout.width = c.shape.K * (tensor == "M" ? c.shape.K : c.shape.V);
    layout.keys = state_windows(c, layout.heads);
  } else {
    layout.heads = shape.size() == 3 ? shape[1] : 1;
    layout.width = width_of(shape.size() == 3 ? 2 : 1);
    layout.keys = token_windows(c, layout.heads);
  }
  return layout;
}

std::vector<double> truth_squares(const OutputLayout& layout, const TruthTensor& truth) {
  std::vector<double> squares(layout.keys.size());
#pragma omp parallel for schedule(static)
  for (std::size_t w = 0; w < squares.size(); ++w) {
    const Rows rows = rows_of(layout, w);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const double* x = truth.hi.data() + (rows.first + r * rows.step) * layout.width;
      for (std::int64_t i = 0; i < layout.width; ++i) squares[w] += x[i] * x[i];
    }
  }
  return squares;
}

TensorError measure(const OutputLayout& layout, const Tensor& seen, const TruthTensor& truth) {
  TensorError error;
  error.squares.assign(layout.keys.size(), 0.0);
  if (!layout.is_state)
    error.row_max.assign(truth.hi.size() / static_cast<std::size_t>(layout.width), 0.0f);
  std::int64_t nonfinite = 0;
#pragma omp parallel for schedule(static) reduction(+ : nonfinite)
  for (std::size_t w = 0; w < layout.keys.size(); ++w) {
    const Rows rows = rows_of(layout, w);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const std::int64_t row = rows.first + r * rows.step;
      double largest = 0, squares = 0;
      for (std::int64_t i = row * layout.width; i < (row + 1) * layout.width; ++i) {
        const double value = seen.at(i);
        if (!std::isfinite(value)) {
          ++nonfinite;
          largest = INFINITY, squares = INFINITY;
          continue;
        }
        const double e = value - truth.hi[static_cast<std::size_t>(i)];
        squares += e * e;
        largest = std::max(largest, std::abs(e));
      }
      error.squares[w] += squares;
      if (!layout.is_state)
        error.row_max[static_cast<std::size_t>(row)] = static_cast<float>(largest);
    }
  }
  error.nonfinite = nonfinite;
  return error;
}

std::vector<float> measure_excess(const OutputLayout& layout, const Tensor& seen,
                                  const TruthTensor& truth, const TensorShadow& shadow) {
  std::vector<float> excess(truth.hi.size() / static_cast<std::size_t>(layout.width));
  const auto bf16 = [](int word) -> double {
    return formats::float_from_bf16(static_cast<std::uint16_t>(word));
  };
#pragma omp parallel for schedule(static)
  for (std::size_t w = 0; w < layout.keys.size(); ++w) {
    const Rows rows = rows_of(layout, w);
    const double rms =
        std::sqrt(mean_square(shadow, w) / static_cast<double>(rows.count * layout.width));
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const std::int64_t row = rows.first + r * rows.step;
      double largest = 0;
      for (std::int64_t i = row * layout.width; i < (row + 1) * layout.width; ++i) {
        // The rounding cell of `seen` reaches half way to its neighbours on both sides.
        const std::uint16_t word = seen.as<std::uint16_t>()[i];
        const double x = bf16(word), t = truth.hi[static_cast<std::size_t>(i)];
        const std::uint16_t magnitude = word & 0x7fff;
        const double larger = std::abs(bf16(magnitude + 1));
        const double smaller = magnitude == 0 ? -larger : std::abs(bf16(magnitude - 1));
        const double toward = (std::signbit(x) ? -t : t);
        const double outside = std::max(
            {0.0, toward - (std::abs(x) + larger) / 2, (std::abs(x) + smaller) / 2 - toward});
        largest = std::max(largest, outside == 0 ? 0.0 : outside / rms);
      }
      excess[static_cast<std::size_t>(row)] = static_cast<float>(largest);
    }
  }
  return excess;
}

double radius_over_shadow(const OutputLayout& layout, const TruthTensor& truth,
                          const TensorShadow& shadow) {
  double worst = 0;
  const std::int64_t truth_rows = static_cast<std::int64_t>(truth.radius.size());
  const std::int64_t width =
      static_cast<std::int64_t>(truth.hi.size()) / truth_rows;  // of the truth's own rows
#pragma omp parallel for schedule(static) reduction(max : worst)
  for (std::size_t w = 0; w < layout.keys.size(); ++w) {
    const Rows rows = rows_of(layout, w);
    double squares = 0;
    for (std::int64_t r = 0; r < rows.count; ++r)
      for (std::int64_t i = (rows.first + r * rows.step) * layout.width / width;
           i < ((rows.first + r * rows.step) + 1) * layout.width / width; ++i)
        squares += truth.radius[static_cast<std::size_t>(i)] *
                   truth.radius[static_cast<std::size_t>(i)] * static_cast<double>(width);
    const double allowed = mean_square(shadow, w);
    // A shadow of zero says that every operation is exact: the truth's, too.
    if (squares > 0 && allowed > 0) worst = std::max(worst, std::sqrt(squares / allowed));
  }
  return worst;
}

std::vector<double> shadow_rms(const OutputLayout& layout, std::int64_t rows,
                               const TensorShadow& shadow) {
  std::vector<double> rms(static_cast<std::size_t>(rows));
  for (std::size_t w = 0; w < layout.keys.size(); ++w) {
    const Rows r = rows_of(layout, w);
    const double value =
        std::sqrt(mean_square(shadow, w) / static_cast<double>(r.count * layout.width));
    for (std::int64_t i = 0; i < r.count; ++i)
      rms[static_cast<std::size_t>(r.first + i * r.step)] = value;
  }
  return rms;
}

std::int64_t differing_elements(const Tensor& a, const Tensor& b) {
  const std::size_t n = size_of(a.dtype);
  std::int64_t differing = 0;
#pragma omp parallel for reduction(+ : differing)
  for (std::size_t at = 0; at < a.bytes.size(); at += n)
    differing += std::memcmp(a.bytes.data() + at, b.bytes.data() + at, n) != 0;
  return differing;
}

}  // namespace numgate
