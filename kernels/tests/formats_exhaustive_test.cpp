#include <gtest/gtest.h>

#include <atomic>

#include "kernels/tests/formats_check.h"

namespace numgate::formats {
namespace {

TEST(FormatsExhaustive, EveryFloat) {
  std::atomic<std::int64_t> wrong{0};
  std::atomic<std::uint32_t> example{0};
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t block = 0; block < 1 << 12; ++block) {
    for (std::int64_t i = 0; i < 1 << 20; ++i) {
      const auto bits = static_cast<std::uint32_t>(block << 20 | i);
      if (wrong_conversion(bits)) {
        ++wrong;
        example = bits;
      }
    }
  }
  EXPECT_EQ(wrong, 0) << *wrong_conversion(example) << " of bits " << example;
}

}  // namespace
}  // namespace numgate::formats
