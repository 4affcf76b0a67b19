#include "property_tests/profiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/errors.h"
#include "property_tests/families.h"

namespace numgate {
namespace {

std::set<std::string> ids(const std::vector<Case>& cases) {
  std::set<std::string> out;
  for (const auto& c : cases) out.insert(c.id());
  return out;
}

TEST(Profiles, QuickCoversEveryScheduleFamilyAndStage) {
  const Profile& quick = profile("quick");
  EXPECT_GE(quick.cases.size(), 30U);
  std::set<std::string> schedules_seen, families_seen, stages_seen;
  for (const auto& c : quick.cases) {
    schedules_seen.insert(c.schedule.text());
    families_seen.insert(c.family);
    stages_seen.insert(c.stage);
  }
  for (const char* s : {"sequential", "chunked@100", "chunked@64", "decode", "replay@16", "cp8",
                        "cp3", "tp2", "varlen", "resume@100"})
    EXPECT_TRUE(schedules_seen.contains(s)) << s;
  for (const auto& f : families())
    EXPECT_TRUE(families_seen.contains(std::string(f.name))) << f.name;
  for (const auto& s : stages()) EXPECT_TRUE(stages_seen.contains(std::string(s.name))) << s.name;
}

TEST(Profiles, CasesAreUniqueAndTheirFamiliesApply) {
  for (const auto& p : profiles()) {
    EXPECT_EQ(ids(p.cases).size(), p.cases.size()) << p.name;
    for (const auto& c : p.cases) {
      EXPECT_NO_THROW(check_family(c)) << c.id();
      EXPECT_EQ(c.plan.misdeclared().size(), 0U) << c.id();
      EXPECT_EQ(parse_case(c.id()).id(), c.id());
    }
    EXPECT_EQ(p.controls.empty(), p.name == "study");
    for (const auto& control : p.controls) {
      EXPECT_FALSE(control.rules.empty()) << control.c.id();
      EXPECT_FALSE(control.why.empty()) << control.c.id();
      EXPECT_FALSE(ids(p.cases).contains(control.c.id()));
    }
  }
}

TEST(Profiles, QuickCasesAreLive) {
  for (const auto& c : profile("quick").cases) {
    const Liveness l = liveness(c, generate(c));
    EXPECT_TRUE(l.live) << c.id() << ": " << l.reason;
  }
}

// The shadow's sixteen evaluations cost about as much per token and head as the square of a head's
// width; this is the campaign's two minutes in those units.
TEST(Profiles, ReleaseHasEveryScheduleKindOfPlanAndFamily) {
  std::set<std::string> seen;
  std::set<std::int64_t> ladder;
  for (const auto& c : profile("release").cases) {
    if (c.stage != "kda.prefill") continue;
    seen.insert(c.schedule.text() + " " + c.plan.text() + " " + c.family);
    if (c.schedule.text() == "cp8" && c.family == "needle" && c.plan.text() == "production")
      if (c.shape.HV == 1) ladder.insert(c.shape.T);
  }
  EXPECT_EQ(ladder, (std::set<std::int64_t>{4096, 16384, 65536, 262144, 1048576}));
  for (const auto& f : families()) {
    if (std::find(f.stages.begin(), f.stages.end(), "kda.prefill") == f.stages.end()) continue;
    for (const std::string s :
         {"sequential", "chunked@1000", "cp2", "cp8", "cp32", "tp8", "replay@16", "resume@1000"})
      for (const std::string plan : {"production", "reference"})
        EXPECT_TRUE(seen.contains(s + " " + plan + " " + std::string(f.name)))
            << s << " " << plan << " " << f.name;
  }
}

// Eight draws each: a family whose shadow takes sixteen would double its cell. A shorter rung of
// each ladder is what runs twice.
TEST(Profiles, LayerIs64HeadsOfEightFamilies) {
  std::map<std::int64_t, std::set<std::string>> families;
  std::map<std::int64_t, std::int64_t> heads;
  for (const auto& c : profile("layer").cases) {
    EXPECT_TRUE(families[c.shape.T].insert(c.family).second) << c.id();
    heads[c.shape.T] += c.shape.HV;
    EXPECT_EQ(c.schedule.kind, ScheduleKind::sequential) << c.id();
    EXPECT_TRUE(c.family != "outlier_channels" && c.family != "strong_decay") << c.id();
    EXPECT_TRUE(c.family == "needle" || !family(c.family).persistent) << c.id();
  }
  for (const std::int64_t T : {16384, 1048576}) {
    EXPECT_EQ(families[T].size(), 8U);
    EXPECT_EQ(heads[T], 64);
  }
  EXPECT_EQ(heads.size(), 2U);
}

TEST(Profiles, QuickStaysSmall) {
  std::set<std::string> shadows;
  double work = 0;
  for (const auto& c : profile("quick").cases) {
    const Shape& s = c.shape;
    if (c.stage != "kda.prefill" && c.stage != "kda.core") continue;
    if (shadows.insert(c.id()).second)
      work += static_cast<double>(s.T * s.HV * s.K * s.V) / (64 * 64);
  }
  EXPECT_LT(work, 250e3);
}

TEST(Select, WithoutGlobsTheProfileWithoutItsControls) {
  const Profile& quick = profile("quick");
  EXPECT_EQ(ids(select(quick, {})), ids(quick.cases));
  const auto three = select(quick, {}, 3);
  EXPECT_EQ(three.size(), 3 * quick.cases.size());
  EXPECT_EQ(seeds_of(3), (std::vector<std::uint64_t>{42, 1, 2}));
  EXPECT_EQ(std::set<std::uint64_t>({42, 1, 2}).contains(three.back().seed), true);
  EXPECT_EQ(seeds_of(64).size(), 64U);
  EXPECT_THROW(seeds_of(0), UsageError);
}

TEST(Select, AGlobFilters) {
  const auto found = select(profile("quick"), {"kda.prefill/cp8/*/needle/*"});
  EXPECT_FALSE(found.empty());
  for (const auto& c : found)
    EXPECT_TRUE(c.family == "needle" && c.schedule.text() == "cp8") << c.id();
  EXPECT_TRUE(
      ids(found).contains(profile("quick").controls.front().c.id()));  // judged like any other
  EXPECT_EQ(ids(select(profile("quick"), {"kda.beta/*", "kda.beta/*/gaussian/*"})),
            ids(select(profile("quick"), {"kda.beta/*"})));
}

TEST(Select, ALiteralCombinationTakesTheLadder) {
  const auto founding = select(profile("quick"), {"kda.prefill/cp8/production:tf32/needle/*"});
  ASSERT_EQ(founding.size(), 5U);
  std::set<std::int64_t> lengths;
  for (const auto& c : founding) {
    lengths.insert(c.shape.T);
    EXPECT_EQ(c.shape.K, 128);
    EXPECT_EQ(c.seed, 42U);
  }
  EXPECT_EQ(lengths, (std::set<std::int64_t>{512, 1024, 2048, 4096, 8192}));
  const auto listed_nowhere =
      select(profile("quick"), {"kda.core/tp2/reference+state=bf16/tiny"}, 2);
  EXPECT_EQ(listed_nowhere.size(), 10U);
  EXPECT_EQ(listed_nowhere.front().shape.H, 2);
  EXPECT_EQ(select(profile("quick"), {"kda.prefill/resume@1000/production/gaussian/*"}).size(), 4U);
  EXPECT_EQ(select(profile("quick"), {"kda.prefill/cp5/production/tiny/T=2048*"}).size(), 1U);
  EXPECT_EQ(select(profile("quick"), {"kda.prefill/cp5/production/tiny/*/seed=7"}, 3).front().seed,
            7U);
  EXPECT_FALSE(select(profile("quick"), {"kda.gate/sequential/reference/fla_cp_test/*"}).empty());
  EXPECT_FALSE(select(profile("quick"), {"kda.prefill/varlen/production/tiny/*"})
                   .front()
                   .shape.cuts.empty());
}

TEST(Select, AFullIdRunsAsItStands) {
  const auto one =
      select(profile("quick"), {"kda.prefill/cp8/production:tf32/needle/T=16384,K=128/seed=9"}, 5);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].seed, 9U);
  EXPECT_EQ(one[0].shape.T, 16384);
}

TEST(Select, RejectsWhatIsMalformedOrMatchesNothing) {
  for (const char* glob :
       {"", "kda prefill/*", "kda.prefill/cp8", "kda.profill/*", "a/b/c/d/e/f/*",
        "kda.prefill/cp8/fast/needle/*", "kda.prefill/cp8/production/needles/*",
        "kda.beta/cp8/reference/gaussian/*", "kda.prefill/cp8/*/needle/T=7*",
        "kda.prefill/cp8/production/needle/T=7*", "kda.prefill/cp8/production/zero_beta/T=8/seed=1",
        "kda.prefill/cp8/production/needle/T=0/seed=1", "kda.prefill/*/seed=99999999999999999999",
        "kda.prefill/resume@9000/production/needle/*"})
    EXPECT_THROW(select(profile("quick"), {glob}), UsageError) << glob;
  EXPECT_THROW(profile("nightly"), UsageError);
}

}  // namespace
}  // namespace numgate
