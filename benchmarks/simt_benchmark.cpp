// What the CPU backend costs: a switch between fibers, and an emulated multiply-add in a kernel and
// alone.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>

#include "kernels/simt/mma.h"
#include "kernels/simt/tensor_core.h"

namespace {

using namespace numgate;

constexpr int kRepeats = 1000;

void per_item(benchmark::State& state, const char* name, double items) {
  state.counters[name] =
      benchmark::Counter(items * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

__global__ void meet(int repeats, bool block) {
  for (int i = 0; i < repeats; ++i) {
    if (block) {
      __syncthreads();
    } else {
      __syncwarp();
    }
  }
}

void BM_Switch(benchmark::State& state) {
  const auto threads = static_cast<unsigned>(state.range(0));
  for (auto _ : state) simt::launch("meet", 1, threads, 0, {}, meet, kRepeats, state.range(1) != 0);
  per_item(state, "time/switch", threads * kRepeats);
}
BENCHMARK(BM_Switch)->ArgNames({"threads", "block"})->ArgsProduct({{32, 256, 1024}, {0, 1}});

template <void (*mma)(float*, const std::uint32_t*, const std::uint32_t*, const float*)>
__global__ void accumulate(int repeats, float* out) {
  float d[4] = {};
  const std::uint32_t one = 0x3c003c00u + threadIdx.x % 32;
  const std::uint32_t a[4] = {one, one, one, one}, b[2] = {one, one};
  for (int i = 0; i < repeats; ++i) mma(d, a, b, d);
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}

template <void (*mma)(float*, const std::uint32_t*, const std::uint32_t*, const float*), int depth>
void BM_MmaInKernel(benchmark::State& state) {
  const auto threads = static_cast<unsigned>(state.range(0));
  float out[1024];
  for (auto _ : state)
    simt::launch("accumulate", 1, threads, 0, {}, accumulate<mma>, kRepeats, out);
  per_item(state, "time/multiply-add", threads / 32 * 128.0 * depth * kRepeats);
}
BENCHMARK(BM_MmaInKernel<simt::mma_m16n8k8_tf32, 8>)
    ->ArgName("threads")
    ->Arg(32)
    ->Arg(128)
    ->Arg(256);
BENCHMARK(BM_MmaInKernel<simt::mma_m16n8k16_bf16, 16>)
    ->ArgName("threads")
    ->Arg(32)
    ->Arg(128)
    ->Arg(256);
BENCHMARK(BM_MmaInKernel<simt::mma_m16n8k16_fp16, 16>)->ArgName("threads")->Arg(128);
BENCHMARK(BM_MmaInKernel<simt::mma_m16n8k32_e4m3, 32>)->ArgName("threads")->Arg(128);

template <tensor_core::Type type>
void BM_Model(benchmark::State& state) {
  tensor_core::Tile tile{};
  std::mt19937 random;
  const auto finite = [&] { return random() & 0x3fff3fffu; };
  for (auto& row : tile.a) {
    for (auto& a : row) a = finite();
  }
  for (auto& row : tile.b) {
    for (auto& b : row) b = finite();
  }
  for (auto _ : state) {
    tensor_core::multiply(type, tensor_core::Unit::mma, tile);
    benchmark::DoNotOptimize(tile.d[0][0]);
  }
  per_item(state, "time/multiply-add", 128.0 * tensor_core::depth(type));
}
BENCHMARK(BM_Model<tensor_core::Type::tf32>);
BENCHMARK(BM_Model<tensor_core::Type::bf16>);

}  // namespace
