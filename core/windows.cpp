#include "core/windows.h"

namespace numgate {

std::vector<Segment> ranks_of(const Case& c) {
  return c.shape.cuts.empty() ? segments(c.schedule, c.shape.T) : c.shape.sequence_segments();
}

std::vector<WindowKey> token_windows(const Case& c, std::int64_t heads) {
  std::vector<WindowKey> keys;
  const auto ranks = ranks_of(c);
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::size_t r = 0; r < ranks.size(); ++r)
      for (std::int64_t t = ranks[r].begin; t < ranks[r].end; t += kWindowTokens) {
        const std::int64_t end = std::min(t + kWindowTokens, ranks[r].end);
        const bool joins = end - t < kShortestWindow && t > ranks[r].begin;
        if (joins)
          keys.back().end = end;
        else
          keys.push_back({h, t, end, static_cast<std::int32_t>(r)});
      }
  return keys;
}

std::vector<WindowKey> state_windows(const Case& c, std::int64_t heads) {
  std::vector<WindowKey> keys;
  const auto sequences = c.shape.sequence_segments();
  for (std::size_t n = 0; n < sequences.size(); ++n)
    for (std::int64_t h = 0; h < heads; ++h)
      keys.push_back({h, sequences[n].end, sequences[n].end, static_cast<std::int32_t>(n)});
  return keys;
}

}  // namespace numgate
