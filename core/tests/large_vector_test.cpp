#include "core/large_vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace numgate {
namespace {

TEST(LargeVector, IsZeroAndStartsAPageWhereItIsLarge) {
  LargeVector<double> x(std::size_t{3} << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data()) % (std::size_t{2} << 20), 0U);
  EXPECT_EQ(std::count(x.begin(), x.end(), 0.0), static_cast<std::ptrdiff_t>(x.size()));
  x.back() = 1;
  const LargeVector<double> copy = x;
  EXPECT_EQ(copy, x);
  x.assign(3, 2.0);
  x.shrink_to_fit();  // from large to small
  EXPECT_EQ(x, (LargeVector<double>{2, 2, 2}));
}

}  // namespace
}  // namespace numgate
