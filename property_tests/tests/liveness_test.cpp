#include <gtest/gtest.h>

#include "property_tests/families.h"

namespace numgate {
namespace {

Liveness live(const std::string& id) {
  const Case c = parse_case(id);
  return liveness(c, generate(c));
}

TEST(Liveness, PersistentFamiliesLiveAtTheLengthsTheyAreMadeFor) {
  for (const char* id :
       {"kda.prefill/cp8/production/needle/T=8192,K=128/seed=42",
        "kda.prefill/sequential/production/needle/T=16384/seed=1",
        "kda.core/sequential/production/needle/T=8,in=f32/seed=1",
        "kda.prefill/varlen/production/needle/T=300/seed=1",
        "kda.prefill/cp8/production/slow_decay/T=65536/seed=42",
        "kda.prefill/sequential/production/slow_decay/T=8192/seed=42",
        "kda.prefill/sequential/production/mixed_decay/T=4096,H=2,HV=4,gate=plain/seed=42",
        "kda.summary/sequential/production/needle/T=512/seed=42",
        "kda.merge/sequential/production/needle/T=32/seed=42"}) {
    const Liveness l = live(id);
    EXPECT_TRUE(l.live) << id << ": " << l.reason;
  }
}

TEST(Liveness, AStateThatForgetsIsVacuousAndSaysSo) {
  for (const char* id : {"kda.prefill/sequential/production/slow_decay/T=65536/seed=42",
                         "kda.prefill/cp2/production/slow_decay/T=131072/seed=42",
                         "kda.core/sequential/production/needle/T=3/seed=42",
                         "kda.core/cp8/production/zero_beta/T=64/seed=42"}) {
    const Liveness l = live(id);
    EXPECT_FALSE(l.live) << id;
    EXPECT_FALSE(l.reason.empty());
  }
  // The same names on gates that forget.
  const Case c = parse_case("kda.core/sequential/production/needle/T=512/seed=42");
  TensorMap inputs = generate(c);
  for (std::int64_t i = 0; i < inputs["g"].size(); ++i) inputs["g"].as<float>()[i] = -0.1F;
  EXPECT_FALSE(liveness(c, inputs).live);
  // And on keys that overwrite every channel.
  inputs = generate(c);
  inputs["khat"] =
      generate(parse_case("kda.core/sequential/production/gaussian/T=512/seed=42")).at("khat");
  EXPECT_FALSE(liveness(c, inputs).live);
}

TEST(Liveness, OtherFamiliesClaimNothing) {
  for (const auto& f : families()) {
    if (f.persistent || !f.applies_to("kda.core")) continue;
    EXPECT_TRUE(
        live("kda.core/sequential/reference/" + std::string(f.name) + "/T=64,state0=random/seed=1")
            .live);
  }
  EXPECT_TRUE(live("kda.gate/sequential/reference/needle/T=64/seed=1").live);
}

}  // namespace
}  // namespace numgate
