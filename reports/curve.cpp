#include "reports/curve.h"

#include <cmath>
#include <map>

#include "reports/score.h"

namespace numgate {

std::vector<Curve> curves(const TensorProfile& tensor, const std::vector<double>& scores,
                          std::int64_t head, std::size_t worst) {
  std::map<std::int32_t, std::map<int, std::size_t>>
      kept;  // window by rank and eighth of an octave
  for (std::size_t i = 0; i < tensor.keys.size(); ++i) {
    const WindowKey& key = tensor.keys[i];
    if (key.head != head || key.end < 1) continue;
    const int eighth = static_cast<int>(std::floor(8 * std::log2(static_cast<double>(key.end))));
    std::size_t& window = kept[key.rank].try_emplace(eighth, i).first->second;
    if (window != worst) window = i;
  }
  std::vector<Curve> out;
  for (const auto& [rank, windows] : kept) {
    Curve curve{rank, {}};
    for (const auto& [eighth, i] : windows) {
      const double truth = tensor.truth_squares[i];
      const double shadow = mean_square(tensor.shadow.windows[i], tensor.shadow.draws);
      curve.points.push_back({tensor.keys[i].end, std::sqrt(ratio(tensor.kernel.squares[i], truth)),
                              std::sqrt(ratio(shadow, truth)), scores[i]});
    }
    out.push_back(std::move(curve));
  }
  return out;
}

}  // namespace numgate
