#include "property_tests/planted_nan.h"

#include <gtest/gtest.h>

#include <set>

#include "core/stage.h"
#include "property_tests/families.h"
#include "property_tests/tests/kda_properties.h"

namespace numgate {
namespace {

class PlantedNans : public testing::TestWithParam<const char*> {
 protected:
  static Case with_seed(int seed) {
    return parse_case(std::string(GetParam()) + "/seed=" + std::to_string(seed));
  }
};

// Whatever input it is planted in.
TEST_P(PlantedNans, ShowInHealthyKernels) {
  std::set<std::string> planted_in, all;
  for (const TensorSpec& spec : stage(with_seed(1).stage).inputs)
    if (spec.shape.starts_with("T ")) all.emplace(spec.name);
  for (int seed = 1; seed <= 200 && planted_in != all; ++seed) {
    const Case c = with_seed(seed);
    TensorMap in = generate(c);
    const PlantedNan planted = plant_nan(c, in);
    if (!planted_in.insert(planted.tensor).second) continue;
    EXPECT_EQ(swallowed_nan(c, planted, run(c, in)), "") << c.id();
    remove_nan(planted, in);
    EXPECT_EQ(in.at(planted.tensor).bytes, generate(c, planted.tensor, {0, c.shape.T}).bytes);
  }
  EXPECT_EQ(planted_in, all);
}

// Outputs that do not know of it.
TEST_P(PlantedNans, DoNotGoMissing) {
  const Case c = with_seed(3);
  TensorMap in = generate(c);
  const TensorMap finite = run(c, in);
  const PlantedNan planted = plant_nan(c, in);
  const std::string hidden = swallowed_nan(c, planted, finite);
  EXPECT_NE(
      hidden.find("a NaN in " + planted.tensor + " at token " + std::to_string(planted.token)),
      std::string::npos)
      << hidden;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PlantedNans,
    testing::Values("kda.prefill/sequential/production/gaussian/T=70,HV=2",
                    "kda.prefill/sequential/reference/gaussian/T=70,gate=plain",
                    "kda.prefill/cp3/production/needle/T=150",
                    "kda.prefill/decode/production/gaussian/T=20",
                    "kda.prefill/replay@16/production/gaussian/T=20",
                    "kda.prefill/tp2/production/gaussian/T=70,H=2",
                    "kda.prefill/varlen/production/gaussian/T=70,cuts=30+40",
                    "kda.core/sequential/production/zero_beta/T=70,state0=random",
                    "kda.summary/sequential/production/gaussian/T=70",
                    "kda.merge/sequential/production/gaussian/T=5,state0=random",
                    "kda.l2norm/sequential/reference/gaussian/T=9",
                    "kda.gate/sequential/reference/gaussian/T=9,gate=bounded",
                    "kda.gate/sequential/reference/gaussian/T=9,gate=plain",
                    "kda.beta/sequential/reference/gaussian/T=9",
                    "kda.conv/cp3/reference/gaussian/T=30,state0=random",
                    "kda.out_norm/sequential/reference/gaussian/T=9"));

// A key head that two value heads read, of which one hides it.
TEST(PlantedNan, ShowsInEveryHeadThatReadsIt) {
  Case c = parse_case("kda.prefill/sequential/production/gaussian/T=70,H=2,HV=4/seed=1");
  PlantedNan planted;
  TensorMap in;
  while (planted.tensor != "k" || planted.head != 1) {
    ++c.seed;
    in = generate(c);
    planted = plant_nan(c, in);
  }
  TensorMap outputs = run(c, in);
  ASSERT_EQ(swallowed_nan(c, planted, outputs), "");
  Tensor& o = outputs.at("o");
  const std::int64_t V = o.shape[2];
  for (std::int64_t v = 0; v < V; ++v) o.as<float>()[(planted.token * 4 + 3) * V + v] = 1;
  EXPECT_NE(swallowed_nan(c, planted, outputs), "");
}

}  // namespace
}  // namespace numgate
