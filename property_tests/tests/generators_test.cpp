#include "property_tests/generators.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <map>

#include "core/errors.h"
#include "property_tests/counterexamples.h"
#include "property_tests/families.h"

namespace numgate {
namespace {

RC_GTEST_PROP(Generators, CasesParseBackAndTheirInputsExist, ()) {
  const Case c = *any_case();
  RC_ASSERT(parse_case(c.id()).id() == c.id());
  RC_ASSERT(c.shape.T >= 1 && c.shape.T <= 400);
  check_family(c);
  RC_ASSERT(generate(c).size() == stage(c.stage).inputs.size());
  RC_TAG(c.schedule.text().substr(0, 2));
}

// rc::gen's own engine, without a property around it.
TEST(Generators, EveryScheduleFamilyAndPlanIsDrawn) {
  std::map<std::string, int> seen;
  const auto plans = generated_plans();
  const auto gen = any_case(plans);
  rc::Random random(1);
  for (int i = 0; i < 4000; ++i) {
    const Case c = gen(random.split(), 100).value();
    ++seen[c.family];
    ++seen[c.plan.text()];
    ++seen[std::string(schedules()[static_cast<std::size_t>(c.schedule.kind)].word)];
    seen["edge"] += (c.shape.T + 2) % 16 <= 4;
  }
  for (const auto& f : families()) {
    EXPECT_EQ(seen[std::string(f.name)] > 0, f.applies_to("kda.core")) << f.name;
  }
  for (const auto& s : schedules()) EXPECT_GT(seen[std::string(s.word)], 0) << s.word;
  for (const auto& p : plans) EXPECT_GT(seen[p], 0) << p;
  EXPECT_GT(seen["edge"], 2000);
  EXPECT_GT(plans.size(), 80U);
}

TEST(Generators, FailuresShrinkToASmallCase) {
  const auto gen = any_case();
  rc::Random random(3);
  const auto fails = [](const Case& c) {
    return c.shape.T >= 17 && c.schedule.kind == ScheduleKind::cp;
  };
  int shrunk = 0;
  for (int attempt = 0; attempt < 100 && shrunk < 3; ++attempt) {
    auto tree = gen(random.split(), 100);
    if (!fails(tree.value())) continue;
    for (bool smaller = true; smaller;) {
      smaller = false;
      auto next = tree.shrinks();
      while (auto candidate = next.next()) {
        if (!fails(candidate->value())) continue;
        tree = *candidate;
        smaller = true;
        break;
      }
    }
    const Case c = tree.value();
    EXPECT_EQ(c.shape.T, 17) << c.id();
    EXPECT_EQ(c.shape.HV, 1) << c.id();
    EXPECT_EQ(c.plan.text(), "reference") << c.id();
    EXPECT_EQ(c.family, "gaussian") << c.id();
    EXPECT_EQ(c.shape.K, 64) << c.id();
    ++shrunk;
  }
  EXPECT_EQ(shrunk, 3);
}

TEST(Counterexamples, AreSavedOnceAndReadBack) {
  const auto dir = std::filesystem::path(testing::TempDir()) / "numgate_counterexamples";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  const Case a = parse_case("kda.prefill/cp3/production/ragged/T=22/seed=5"),
             b = parse_case("kda.core/decode/reference/gaussian/T=9/seed=6");
  EXPECT_EQ(save_counterexample(dir, a, "W = 3.1 of o at token 21"),
            save_counterexample(dir, a, "again"));
  save_counterexample(dir, b, "differs");
  const auto saved = saved_counterexamples(dir);
  ASSERT_EQ(saved.size(), 2U);
  EXPECT_EQ(saved[0].id(), b.id());
  EXPECT_EQ(saved[1].id(), a.id());
  std::ofstream(dir / "broken.txt") << "kda.core/decode\n";
  EXPECT_THROW(saved_counterexamples(dir), UsageError);
  std::filesystem::remove_all(dir);
  EXPECT_THROW(save_counterexample(dir / "missing", a, ""), UsageError);
}

TEST(Counterexamples, TheSavedOnesParse) {
  EXPECT_NO_THROW(saved_counterexamples(NUMGATE_SOURCE_DIR "/property_tests/counterexamples"));
}

}  // namespace
}  // namespace numgate
