// The shadow's device code, run by teams of host threads, against the shadow of the CPU.
#include <gtest/gtest.h>

#include "oracles/tests/host_team.h"
#include "oracles/tests/shadow_comparison.h"

namespace numgate {
namespace {

class TeamShadow : public testing::TestWithParam<const char*> {};

TEST_P(TeamShadow, IsTheShadowOfTheCpu) {
  const Case c = parse_case(GetParam());
  const TensorMap inputs = recurrence_inputs(c);
  const Truth truth = compute_truth(c, inputs);
  const ShadowOptions options{.draws = 8};
  const auto cpu = compute_shadow(c, c.plan.declared, inputs, truth, options);
  team::HostTeam device(1);
  shadow::SiteSet used;
  expect_same_shadow(shadow_on(device, c, inputs, truth, options, used), cpu, 1e-9);
  EXPECT_TRUE(used[static_cast<std::size_t>(Site::state)]);
  EXPECT_FALSE(used[static_cast<std::size_t>(Site::conv)]);
}

INSTANTIATE_TEST_SUITE_P(
    Kda, TeamShadow,
    testing::Values("kda.core/sequential/reference/x/T=200,K=64/seed=1",
                    "kda.core/sequential/production/x/T=139,K=64,V=128,H=1,HV=2/seed=2",
                    "kda.core/cp3/tf32/x/T=200,K=64/seed=3",
                    "kda.core/cp3/production/x/T=150,K=64,V=128,state0=random/seed=4",
                    "kda.core/cp2/tf32x3/x/T=100,K=64/seed=13",
                    "kda.core/cp8/reference+kv.dot=bf16x3/x/T=10,K=64/seed=5",
                    "kda.core/chunked@50/production+handoff=bf16/x/T=139,K=64/seed=6",
                    "kda.core/resume@17/reference+w.dot=tf32rna/x/T=90,K=64/seed=7",
                    "kda.core/varlen/reference+h.store=fp16/x/T=150,K=64,cuts=1+70/seed=8",
                    "kda.core/decode/production/x/T=100,K=64,state0=random/seed=9",
                    "kda.core/replay@16/reference+state=bf16/x/T=150,K=64/seed=10",
                    "kda.prefill/sequential/reference/x/T=139,K=64/seed=11",
                    "kda.prefill/cp2/production/x/T=139,K=64,gate=plain/seed=12"));

// Every operation waits for all threads: whoever shares the work, mode D gives the same bits.
TEST(TeamShadow, DoesNotDependOnTheNumberOfThreads) {
  const Case c = parse_case("kda.prefill/cp2/production/x/T=70,K=64/seed=1");
  const TensorMap inputs = recurrence_inputs(c);
  const Truth truth = compute_truth(c, inputs);
  const ShadowOptions options{.draws = 2};
  team::HostTeam one(1), three(3);
  shadow::SiteSet used;
  const auto alone = shadow_on(one, c, inputs, truth, options, used),
             together = shadow_on(three, c, inputs, truth, options, used);
  for (const auto& [name, shadow] : alone)
    for (std::size_t w = 0; w < shadow.windows.size(); ++w)
      EXPECT_EQ(shadow.windows[w].squares[1], together.at(name).windows[w].squares[1]) << name;
}

}  // namespace
}  // namespace numgate
