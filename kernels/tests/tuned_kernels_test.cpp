// The tuned kernels write the same bits as the kernels for any formats.
#include "kernels/tests/tuned_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace numgate::kernels::cpu
