// The mma wrappers against the hardware's results, through PTX's fragment layouts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/tests/golden_vectors.h"
#include "kernels/tests/tensor_core_kernels.h"

namespace numgate {
namespace {

using tensor_core::Type;
using Registers = std::vector<std::uint32_t>;

// PTX ISA, "Matrix fragments for mma": element i of a lane's fragment, `n` elements a register.
struct Place {
  int row, column;
};
Place place_a(int lane, int i, int n) {
  return {lane / 4 + (i / n % 2 == 0 ? 0 : 8), lane % 4 * n + i % n + (i < 2 * n ? 0 : 4 * n)};
}
Place place_b(int lane, int i, int n) {
  return {lane % 4 * n + i % n + (i < n ? 0 : 4 * n), lane / 4};
}
Place place_c(int lane, int i) { return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + i % 2}; }

class Mma : public testing::TestWithParam<int> {};

TEST_P(Mma, EqualsTheHardwareThroughFragments) {
  const auto type = static_cast<Type>(GetParam());
  const std::string names[] = {"tf32", "bf16", "fp16", "e4m3", "e5m2", "s8"};
  const auto golden = tensor_core::golden_vectors("mma_" + names[GetParam()], type);
  const int K = golden.depth, n = K / 8, tiles = tensor_core::kGoldenTiles;
  Registers a(tiles * 128), b(tiles * 64), d(tiles * 128), expected(tiles * 128);
  for (int tile = 0; tile < tiles; ++tile) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4 * n; ++i) {
        const auto [row, k] = place_a(lane, i, n);
        a[(tile * 32 + lane) * 4 + i / n] |= golden.a(tile)[row * K + k] << (i % n * 32 / n);
      }
      for (int i = 0; i < 2 * n; ++i) {
        const auto [k, column] = place_b(lane, i, n);
        b[(tile * 32 + lane) * 2 + i / n] |= golden.b(tile)[k * 8 + column] << (i % n * 32 / n);
      }
      for (int i = 0; i < 4; ++i) {
        const auto [row, column] = place_c(lane, i);
        d[(tile * 32 + lane) * 4 + i] = golden.c(tile)[row * 8 + column];
        expected[(tile * 32 + lane) * 4 + i] = golden.d(tile)[row * 8 + column];
      }
    }
  }
  simt::launch("mma_tiles", tiles, 32, 0, {}, kernels::NUMGATE_BACKEND::mma_tiles, type, a.data(),
               b.data(), d.data());
  EXPECT_EQ(d, expected);
}

INSTANTIATE_TEST_SUITE_P(All, Mma, testing::Range(0, 6));

TEST(MmaErrors, AWholeWarpIsNeeded) {
  Registers a(128), b(64), d(128);
  EXPECT_THROW(simt::launch("part", 1, 31, 0, {}, kernels::NUMGATE_BACKEND::mma_tiles, Type::tf32,
                            a.data(), b.data(), d.data()),
               KernelError);
}

}  // namespace
}  // namespace numgate
