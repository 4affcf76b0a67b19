#include "oracles/shadow/error_sums.h"

#include <algorithm>
#include <limits>

#include "core/windows.h"
#include "oracles/forms/walk.h"

namespace numgate::shadow {

bool has_tokens(const Case& c, std::string_view tensor) {
  for (const auto& spec : stage(c.stage).outputs)
    if (spec.name == tensor) return spec.shape.starts_with("T ");
  return false;
}

ErrorSums::ErrorSums(const Case& c, std::string_view tensor, const Truth& truth, int draws)
    : truth_(truth.outputs.at(std::string(tensor == "fold" ? "state" : tensor))),
      is_state_(!has_tokens(c, tensor)),
      heads_(forms::heads_of(c)),
      draws_(draws) {
  if (is_state_) {
    const bool recurrent = c.stage == "kda.prefill" || c.stage == "kda.core";
    const std::int64_t sequences = recurrent ? c.shape.sequences() : 1;
    width_ = static_cast<std::int64_t>(truth_.hi.size()) / (sequences * heads_);
    windows_.resize(static_cast<std::size_t>(sequences * heads_));
  } else {
    const std::int64_t rows = c.shape.T * heads_;
    width_ = static_cast<std::int64_t>(truth_.hi.size()) / rows;
    const auto keys = token_windows(c, heads_);
    windows_.resize(keys.size());
    windows_per_head_ = static_cast<std::int64_t>(keys.size()) / heads_;
    window_of_.resize(static_cast<std::size_t>(c.shape.T));
    for (std::int64_t w = 0; w < windows_per_head_; ++w)
      std::fill(window_of_.begin() + keys[w].begin, window_of_.begin() + keys[w].end,
                static_cast<std::int32_t>(w));
    row_max_.assign(2 * static_cast<std::size_t>(draws),
                    LargeVector<float>(static_cast<std::size_t>(rows)));
  }
  raw_.resize(windows_.size());
}

void ErrorSums::add(int mode, int draw, std::int64_t head, std::int64_t first,
                    const forms::Matrix<double>& rows) {
  const std::int64_t count = is_state_ ? 1 : rows.rows();
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t at = ((first + r) * heads_ + head) * width_;
    add_row(mode, draw, head, first + r,
            row_error(rows.data() + r * width_, truth_.hi.data() + at,
                      truth_.lo.empty() ? nullptr : truth_.lo.data() + at, width_));
  }
}

void ErrorSums::add_row(int mode, int draw, std::int64_t head, std::int64_t at,
                        const RowError& error) {
  const std::int64_t row = at * heads_ + head,
                     window = is_state_ ? row : head * windows_per_head_ + window_of_[at];
  windows_[window].squares[mode][draw] += std::max(error.squares, error.floor * error.floor);
  raw_[window].squares[mode][draw] += error.squares;
  if (!is_state_)
    row_max_[mode * draws_ + draw][row] = static_cast<float>(std::max(error.largest, error.floor));
}

double ErrorSums::mean_square() const {
  double sums[2] = {};
  for (const auto& w : raw_)
    for (int mode = 0; mode < 2; ++mode)
      for (int draw = 0; draw < draws_; ++draw) sums[mode] += w.squares[mode][draw] / draws_;
  return std::max(sums[0], sums[1]);
}

TensorShadow ErrorSums::finish() && {
  TensorShadow out;
  out.draws = draws_;
  out.windows = std::move(windows_);
  if (is_state_) return out;
  const std::size_t rows = row_max_[0].size();
  for (auto& mean : out.row_max) mean.resize(rows);
  LargeVector<float> ratios;  // in any order
#pragma omp parallel
  {
    LargeVector<float> some;
#pragma omp for schedule(static) nowait
    for (std::size_t row = 0; row < rows; ++row) {
      double sums[2] = {};
      for (int mode = 0; mode < 2; ++mode) {
        for (int draw = 0; draw < draws_; ++draw) sums[mode] += row_max_[mode * draws_ + draw][row];
        out.row_max[mode][row] = static_cast<float>(sums[mode] / draws_);
      }
      const int mode = sums[1] > sums[0];
      for (int draw = 0; draw < draws_; ++draw) {
        const double own = row_max_[mode * draws_ + draw][row],
                     others = (sums[mode] - own) / (draws_ - 1);
        if (own > 0)
          some.push_back(others > 0 ? static_cast<float>(own / others)
                                    : std::numeric_limits<float>::infinity());
      }
    }
#pragma omp critical
    ratios.insert(ratios.end(), some.begin(), some.end());
  }
  if (!ratios.empty()) {
    const auto at = ratios.begin() +
                    static_cast<std::ptrdiff_t>(0.999 * static_cast<double>(ratios.size() - 1));
    std::nth_element(ratios.begin(), at, ratios.end());
    out.row_null = *at;
  }
  return out;
}

}  // namespace numgate::shadow
