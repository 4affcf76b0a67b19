// What a shadow costs: milliseconds a chunk and draw, against the same form in plain double.
#include <benchmark/benchmark.h>

#include <cmath>
#include <ctime>
#include <map>
#include <random>

#include "oracles/forms/walk.h"
#include "oracles/shadow/shadow_sites.h"

namespace numgate {
namespace {

Case bench_case(const std::string& schedule, const std::string& plan) {
  return parse_case("kda.core/" + schedule + "/" + plan + "/gaussian/T=1024,K=128/seed=1");
}

TensorMap inputs_of(const Case& c) {
  TensorMap in;
  std::mt19937_64 bits(1);
  std::normal_distribution<float> normal;
  for (const auto& spec : stage(c.stage).inputs) {
    Tensor t(Dtype::f32, tensor_shape(spec, c.shape));
    for (std::int64_t i = 0; i < t.size(); ++i) {
      const float x = normal(bits);
      t.as<float>()[i] = spec.name == "g"      ? -std::log1p(std::exp(x))
                         : spec.name == "beta" ? 1 / (1 + std::exp(x))
                         : spec.name == "v"    ? x
                                               : x / std::sqrt(static_cast<float>(c.shape.K));
    }
    in.emplace(spec.name, std::move(t));
  }
  return in;
}

void walk_with(benchmark::State& state, const char* schedule, const char* plan,
               shadow::Reading reading, std::bitset<kSiteCount> active) {
  const Case c = bench_case(schedule, plan);
  const TensorMap inputs = inputs_of(c);
  double seconds = 0;
  for (auto _ : state) {
    const std::clock_t start = std::clock();  // processor time: other work may run beside
    shadow::ShadowSites sites(c.plan.declared, {reading, 0, 8, 1}, active);
    forms::walk(sites, c, inputs, 0,
                [](std::string_view, std::int64_t, const forms::Matrix<double>& rows) {
                  benchmark::DoNotOptimize(rows.data());
                });
    seconds += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }
  seconds /= static_cast<double>(state.iterations());
  // The plain form of each schedule is registered, and so measured, before its shadows.
  static std::map<std::string, double> plain;
  if (active.none()) plain[schedule] = seconds;
  state.counters["ms_per_chunk"] = 1e3 * seconds / static_cast<double>(c.shape.T / 64);
  if (plain.contains(schedule)) state.counters["ratio"] = seconds / plain[schedule];
}

constexpr std::bitset<kSiteCount> kNone;
const std::bitset<kSiteCount> kAll = ~kNone;
using shadow::Reading;

BENCHMARK_CAPTURE(walk_with, sequential / double, "sequential", "reference", Reading::dithered,
                  kNone);
BENCHMARK_CAPTURE(walk_with, sequential / reference / I, "sequential", "reference",
                  Reading::independent, kAll);
BENCHMARK_CAPTURE(walk_with, sequential / reference / D, "sequential", "reference",
                  Reading::dithered, kAll);
BENCHMARK_CAPTURE(walk_with, sequential / production / I, "sequential", "production",
                  Reading::independent, kAll);
BENCHMARK_CAPTURE(walk_with, sequential / production / D, "sequential", "production",
                  Reading::dithered, kAll);
BENCHMARK_CAPTURE(walk_with, cp2 / double, "cp2", "reference", Reading::dithered, kNone);
BENCHMARK_CAPTURE(walk_with, cp2 / reference / I, "cp2", "reference", Reading::independent, kAll);
BENCHMARK_CAPTURE(walk_with, cp2 / production / I, "cp2", "production", Reading::independent, kAll);
BENCHMARK_CAPTURE(walk_with, cp2 / production / D, "cp2", "production", Reading::dithered, kAll);

}  // namespace
}  // namespace numgate
