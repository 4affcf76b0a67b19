// The shadow on a GPU against the shadow of the CPU, and its speed. Skips where there is no GPU.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "core/errors.h"
#include "oracles/tests/shadow_comparison.h"

namespace numgate {
namespace {

std::unique_ptr<team::TeamDevice> device() {
  try {
    return team::cuda_shadow_device();
  } catch (const UsageError&) {
    return nullptr;
  }
}

class CudaShadow : public testing::TestWithParam<const char*> {};

TEST_P(CudaShadow, IsTheShadowOfTheCpu) {
  const auto gpu = device();
  if (!gpu) GTEST_SKIP() << "no GPU";
  const Case c = parse_case(GetParam());
  const TensorMap inputs = recurrence_inputs(c);
  const Truth truth = compute_truth(c, inputs);
  const ShadowOptions options{.draws = 8};
  // The scalar stages use the device's own exp and log1p: a value whose last bits differ may fall
  // on the other side of a rounding.
  const double relative = c.stage == "kda.prefill" ? 1e-2 : 1e-9;
  shadow::SiteSet used;
  expect_same_shadow(shadow_on(*gpu, c, inputs, truth, options, used),
                     compute_shadow(c, c.plan.declared, inputs, truth, options), relative);
}

INSTANTIATE_TEST_SUITE_P(
    Kda, CudaShadow,
    testing::Values("kda.core/sequential/reference/x/T=500,K=128/seed=1",
                    "kda.core/sequential/production/x/T=339,K=64,V=128,H=1,HV=2/seed=2",
                    "kda.core/cp3/tf32/x/T=400,K=128/seed=3",
                    "kda.core/cp3/production/x/T=350,K=64,V=128,state0=random/seed=4",
                    "kda.core/cp2/tf32x3/x/T=300,K=128/seed=13",
                    "kda.core/cp8/reference+kv.dot=bf16x3/x/T=10,K=64/seed=5",
                    "kda.core/chunked@50/production+handoff=bf16/x/T=139,K=64/seed=6",
                    "kda.core/resume@17/reference+w.dot=tf32rna/x/T=90,K=64/seed=7",
                    "kda.core/varlen/reference+h.store=fp16/x/T=150,K=64,cuts=1+70/seed=8",
                    "kda.core/decode/production/x/T=100,K=64,state0=random/seed=9",
                    "kda.core/replay@16/reference+state=bf16/x/T=150,K=64/seed=10",
                    "kda.prefill/sequential/reference/x/T=139,K=64/seed=11",
                    "kda.prefill/cp2/production/x/T=139,K=64,gate=plain/seed=12"));

// Speed of 16 walks of 65,536 tokens at K = V = 128, truth apart: the truth is zero here, and the
// errors are the outputs themselves.
TEST(CudaShadow, PrintsItsSpeed) {
  const auto gpu = device();
  if (!gpu) GTEST_SKIP() << "no GPU";
  for (const char* id : {"kda.prefill/sequential/reference/x/T=65536,K=128/seed=1",
                         "kda.prefill/sequential/production/x/T=65536,K=128/seed=1",
                         "kda.prefill/cp8/reference/x/T=65536,K=128/seed=1",
                         "kda.prefill/cp8/production/x/T=65536,K=128/seed=1"}) {
    const Case c = parse_case(id);
    const TensorMap inputs = recurrence_inputs(c);
    Truth truth;
    for (const auto& spec : stage(c.stage).outputs) {
      TruthTensor& t = truth.outputs[std::string(spec.name)];
      t.shape = tensor_shape(spec, c.shape);
      std::size_t size = 1;
      for (const auto extent : t.shape) size *= static_cast<std::size_t>(extent);
      t.hi.assign(size, 0);
    }
    const auto start = std::chrono::steady_clock::now();
    shadow::SiteSet used;
    const auto shadow = shadow_on(*gpu, c, inputs, truth, {.draws = 8}, used);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%-58s %6.2f s  %6.1f us a chunk and walk\n", id, seconds,
                seconds * 1e6 / (65536.0 / 64 * 16));
    for (const auto& w : shadow.at("o").windows)
      for (const auto& mode : w.squares)
        for (int draw = 0; draw < 8; ++draw) {
          ASSERT_TRUE(std::isfinite(mode[static_cast<std::size_t>(draw)]));
          ASSERT_GT(mode[static_cast<std::size_t>(draw)], 0);
        }
  }
}

}  // namespace
}  // namespace numgate
