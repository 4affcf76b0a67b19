#include "property_tests/random_stream.h"

#include <algorithm>

namespace numgate {

// A block of Philox gives four draws, and the middle of the distribution, 85 % of it, is computed
// for all draws at once: there are no branches in it.
void Stream::normals(std::uint64_t first, std::int64_t n, double* out) const {
  constexpr int kAtOnce = 64;
  double p[kAtOnce], middle[kAtOnce];
  while (n > 0) {
    const auto count = static_cast<int>(std::min<std::int64_t>(n, kAtOnce));
    for (int i = 0; i < count;) {
      const std::uint64_t at = first + static_cast<std::uint64_t>(i);
      const auto words = block(at / 4);
      for (std::uint64_t w = at % 4; w < 4 && i < count; ++w) p[i++] = uniform_of(words[w]);
    }
    std::fill(p + count, p + kAtOnce, 0.5);
#pragma omp simd
    for (int i = 0; i < kAtOnce; ++i) middle[i] = portable::inverse_normal_middle(p[i] - 0.5);
    for (int i = 0; i < count; ++i)
      out[i] = std::abs(p[i] - 0.5) <= portable::kInverseNormalMiddle
                   ? middle[i]
                   : portable::inverse_normal_tail(p[i]);
    first += static_cast<std::uint64_t>(count);
    out += count;
    n -= count;
  }
}

}  // namespace numgate
