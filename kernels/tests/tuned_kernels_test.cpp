// The tuned kernels write the same bits as the kernels for any formats.
#include "kernels/tests/tuned_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace numgate::kernels::cpu {
namespace {

struct Shape {
  std::int64_t T;
  int H, HV, K, V;
};

class TunedKernels : public testing::TestWithParam<Shape> {};

TEST_P(TunedKernels, WriteTheBitsOfTheOthers) {
  const Shape s = GetParam();
  for (const auto& [name, bytes] : run_both(s.T, s.H, s.HV, s.K, s.V, 5)) {
    EXPECT_EQ(bytes.any, bytes.tuned) << name;
    EXPECT_TRUE(std::any_of(bytes.any.begin(), bytes.any.end(), [](auto b) { return b != 0; }))
        << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TunedKernels,
                         testing::Values(Shape{200, 1, 1, 128, 128}, Shape{64, 1, 2, 64, 64},
                                         Shape{131, 2, 2, 64, 128}, Shape{1, 1, 1, 128, 128},
                                         Shape{80, 1, 2, 128, 128}));

// A NaN is not lost on its way through the exponentials: it is in every output from its token on,
// and in no other head.
TEST(TunedKernelsNan, GateReachesTheOutputs) {
  const std::int64_t T = 100, token = 70;
  const int HV = 2, V = 64;
  const auto outputs = run_both(T, 1, HV, 64, V, 5, token);
  for (const auto& bytes : {outputs.at("o").any, outputs.at("o").tuned})
    for (std::int64_t t = 0; t < T; ++t)
      for (int at = 0; at < HV * V; ++at) {
        float o;
        std::memcpy(&o, bytes.data() + (t * HV * V + at) * 4, 4);
        if (at < V && t >= token) {
          ASSERT_TRUE(std::isnan(o)) << t << ", " << at;
        } else if (at >= V || t < kChunk) {
          ASSERT_TRUE(std::isfinite(o)) << t << ", " << at;
        }
      }
}

}  // namespace
}  // namespace numgate::kernels::cpu
