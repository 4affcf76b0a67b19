#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/tests/simt_kernels.h"

namespace numgate {
namespace {

using namespace kernels::NUMGATE_BACKEND;
using simt::launch;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

const simt::Stream stream{};

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const KernelError& e) {
    return e.what();
  }
  return "no error";
}

std::vector<float> sums(bool barrier, std::uint64_t seed) {
  std::vector<float> in(4 * 256), out(4);
  std::iota(in.begin(), in.end(), 0.0f);
  simt::set_schedule_seed(seed);
  launch("reduce", 4, 256, 0, stream, reduce, in.data(), out.data(), barrier);
  return out;
}

TEST(Simt, ReductionThroughShufflesAndSharedMemory) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(sums(true, seed), (std::vector<float>{32640, 98176, 163712, 229248}));
  }
}

TEST(Simt, MissingBarrierShowsUnderSomeSchedule) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto out = sums(false, seed);
    EXPECT_EQ(testing::PrintToString(out), testing::PrintToString(sums(false, seed)));
    seen.insert(testing::PrintToString(out));
  }
  EXPECT_GT(seen.size(), 1u);
}

TEST(Simt, ScheduleIsAFunctionOfTheSeed) {
  const auto run = [](std::uint64_t seed) {
    std::vector<unsigned> out(96);
    unsigned counter = 0;
    simt::set_schedule_seed(seed);
    launch("order", 1, 96, 0, stream, order, &counter, out.data());
    return out;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(Simt, Templates) {
  std::vector<float> floats(12);
  launch("fill", 1, 4, 0, stream, fill<3, float>, floats.data(), 2.5f);
  EXPECT_THAT(floats, Each(2.5f));
  std::vector<int> ints(20);
  launch("fill", 1, 4, 0, stream, fill<5, int>, ints.data(), 7);
  EXPECT_THAT(ints, Each(7));
}

TEST(Simt, IndicesOfThreeDimensions) {
  const dim3 grid(2, 3, 4), block(5, 3, 2);
  std::vector<std::uint32_t> out(24 * 30);
  launch("places", grid, block, 0, stream, places, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i % 30 + 1000 * (i / 30));
}

TEST(Simt, DynamicSharedMemory) {
  std::vector<std::uint32_t> in(100), out(100);
  std::iota(in.begin(), in.end(), 0u);
  launch("rotate", 1, 100, 800, stream, rotate_dynamic, in.data(), out.data());
  for (unsigned i = 0; i < 100; ++i) EXPECT_EQ(out[i], (i + 99) % 100);
}

TEST(Simt, SharedMemoryIsPoisonedForEveryBlock) {
  std::vector<std::uint32_t> out(2 * 64);
  launch("poison", 64, 1, 32, stream, read_poison, out.data());
  EXPECT_THAT(out, Each(0xffffffffu));
}

TEST(Simt, GroupsOfSharedMemory) {
  std::vector<std::uint32_t> out(3);
  launch("groups", 1, 1, 0, stream, load_store_groups, out.data());
  EXPECT_EQ(out, (std::vector<std::uint32_t>{1, 1, 0xabcd1234u}));
}

TEST(Simt, AnAsynchronousCopyIsPoisonUntilItsWait) {
  alignas(16) std::uint32_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  constexpr std::uint32_t p = 0xffffffffu;
  std::vector<std::uint32_t> out(24);
  launch("copies", 1, 1, 0, stream, copies, in, out.data());
  EXPECT_EQ(out, (std::vector<std::uint32_t>{p, p, p, p, p, p, p, p, 1, 2, 3, 4,
                                             p, p, p, p, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Simt, MatricesOfFragments) {
  for (const bool transposed : {false, true}) {
    std::vector<std::uint32_t> out(256);
    launch("matrices", 1, 32, 0, stream, load_matrices, out.data(), transposed);
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned m = 0; m < 8; ++m) {
        const bool turned = transposed != (m >= 4);
        const unsigned step = turned ? 8 : 1, other = turned ? 1 : 8;
        const unsigned first = 64 * (m % 4) + lane / 4 * other + 2 * (lane % 4) * step;
        EXPECT_EQ(out[8 * lane + m], first | (first + step) << 16) << lane << " " << m;
      }
  }
}

TEST(Simt, SharedMemoryIsChecked) {
  std::uint32_t out = 0;
  float value = 0;
  const auto at = [&](int index) {
    return error_of([&] { launch("oob", 2, 32, 0, stream, read_shared_at, &out, index); });
  };
  EXPECT_EQ(at(7), "no error");
  EXPECT_EQ(at(8),
            "kernel 'oob' block (0,0,0) thread (3,0,0): 'table' has no index 8, only 8 elements");
  EXPECT_THAT(at(-1), HasSubstr("no index -1"));
  EXPECT_THAT(error_of([] { launch("beyond", 1, 1, 64, stream, dynamic_beyond, 32, 9); }),
              AllOf(HasSubstr("kernel 'beyond' block (0,0,0) thread (0,0,0)"),
                    HasSubstr("byte offset 32")));
  EXPECT_EQ(error_of([] { launch("within", 1, 1, 64, stream, dynamic_beyond, 32, 8); }),
            "no error");
  EXPECT_THAT(error_of([] { launch("odd", 1, 1, 64, stream, dynamic_beyond, 2, 1); }),
              HasSubstr("misaligned"));
  EXPECT_THAT(error_of([&] { launch("odd", 1, 1, 0, stream, misaligned_load4, &value); }),
              HasSubstr("misaligned access to 'table' at index 2"));
}

TEST(Simt, DivergentBarrierIsAnError) {
  for (int how = 0; how < 3; ++how) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      simt::set_schedule_seed(seed);
      const auto error =
          error_of([&] { launch("divergent", 4, 64, 0, stream, divergent_barrier, 33, how); });
      EXPECT_THAT(error, AllOf(HasSubstr("kernel 'divergent' block (2,0,0) thread ("),
                               HasSubstr("__syncthreads")));
      EXPECT_THAT(error, HasSubstr(how == 0   ? "thread (33,0,0), which has returned"
                                   : how == 1 ? "divergent barrier"
                                              : "a shuffle"));
    }
  }
}

TEST(Simt, DivergentWarpIsAnError) {
  const auto run = [](unsigned threads, int how) {
    return error_of([&] { launch("warp", 1, threads, 0, stream, divergent_warp, 40, how); });
  };
  EXPECT_THAT(run(64, 0),
              AllOf(HasSubstr("at __syncwarp with lane mask ffffffff for thread (40,0,0), "
                              "which has returned"),
                    HasSubstr("kernel 'warp' block (0,0,0) thread (32,0,0)")));
  EXPECT_THAT(run(64, 1), AllOf(HasSubstr("__syncwarp"), HasSubstr("__syncthreads")));
  EXPECT_THAT(run(64, 2), HasSubstr("divergent warp"));
  EXPECT_THAT(run(48, 3), HasSubstr("a lane that does not exist"));
  EXPECT_EQ(run(64, 3), "no error");
}

TEST(Simt, ExceptionsOfTheLowestBlockReachTheCaller) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    try {
      launch("throw", 64, 64, 0, stream, throw_at, 11, 5);
      FAIL();
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "block 11");
    }
    EXPECT_EQ(sums(true, 0)[0], 32640);
  }
}

TEST(Simt, ImpossibleLaunchesAreErrors) {
  unsigned* none = nullptr;
  EXPECT_THAT(error_of([&] { launch("big", 1, 1025, 0, stream, order, none, none); }),
              HasSubstr("1025 threads"));
  EXPECT_THAT(error_of([&] { launch("none", 0, 32, 0, stream, order, none, none); }),
              HasSubstr("grid (0,1,1)"));
  EXPECT_THAT(error_of([&] { launch("fat", 1, 32, 1 << 20, stream, order, none, none); }),
              HasSubstr("1048576 bytes of dynamic shared memory"));
}

TEST(Simt, ShufflesAndVotes) {
  std::vector<std::uint32_t> out(7 * 32);
  launch("shuffles", 1, 32, 0, stream, shuffles, out.data());
  for (unsigned i = 0; i < 32; ++i) {
    EXPECT_EQ(out[i], i / 8 * 8 + 3);
    EXPECT_EQ(out[32 + i], i % 16 >= 2 ? i - 2 : i);
    EXPECT_EQ(out[64 + i], i % 16 < 14 ? i + 2 : i);
    EXPECT_EQ(out[96 + i], i ^ 5);
    EXPECT_EQ(out[128 + i], 0x49249249u);
    EXPECT_EQ(out[160 + i], 2u);
    EXPECT_EQ(__uint_as_float(out[192 + i]), 15.5f);
  }
}

TEST(Simt, PartsOfAWarpMeetApart) {
  std::vector<std::uint32_t> out(32);
  launch("half_warps", 1, 32, 0, stream, half_warps, out.data());
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(out[i], i < 16 ? 15u : 18u);
}

}  // namespace
}  // namespace numgate
