#include "core/case_id.h"

#include <gtest/gtest.h>

#include "core/errors.h"

namespace numgate {

TEST(CaseId, PrintsEveryDefaultAndParsesBack) {
  const Case c = parse_case("kda.prefill/cp8/production:tf32/needle/T=65536,H=1,K=128/seed=42");
  EXPECT_EQ(c.id(),
            "kda.prefill/cp8/production:tf32/needle/"
            "T=65536,H=1,HV=1,K=128,V=128,in=bf16,gate=bounded,state0=zero,cuts=none/seed=42");
  EXPECT_EQ(parse_case(c.id()).id(), c.id());
  EXPECT_EQ(c.plan.misdeclared(), (std::vector<Site>{Site::summary_chain, Site::merge_dot}));
}

TEST(CaseId, RejectsWhatIsWrongAndNamesIt) {
  for (const auto& [id, word] : std::vector<std::pair<std::string, std::string>>{
           {"kda.prefill/cp8/production/needle/T=0/seed=1", "T '0'"},
           {"kda.prefill/cp8/production/needle/T=1099511627776/seed=1", "T '1099511627776'"},
           {"kda.prefill/cp0/production/needle/T=64/seed=1", "schedule 'cp0'"},
           {"kda.prefill/cp8/fast/needle/T=64/seed=1", "plan 'fast'"},
           {"kda.prefill/cp8/production+akk=tf32/needle/T=64/seed=1", "site 'akk'"},
           {"kda.prefill/cp8/production+state=tf32x3/needle/T=64/seed=1", "state=tf32x3"},
           {"kda.prefill/cp8/production+merge.dot=diag_tf32x3/needle/T=64/seed=1",
            "merge.dot=diag_tf32x3"},
           {"kda.prefill/cp8/production+state=diag_tf32x3/needle/T=64/seed=1", "state=diag_tf32x3"},
           {"kda.prefill/cp8/production+diag.dot=diag_tf32x3/needle/T=64/seed=1",
            "diag.dot=diag_tf32x3"},
           {"kda.profill/cp8/production/needle/T=64/seed=1", "stage 'kda.profill'"},
           {"kda.beta/cp8/production/needle/T=64/seed=1", "schedule 'cp8'"},
           {"kda.prefill/cp8/production/needle/T=64,H=2,HV=3/seed=1", "HV '3'"},
           {"kda.prefill/cp8/production/needle/T=64,K=96/seed=1", "K,V '96,96'"},
           {"kda.prefill/cp8/production/needle/T=64/seed=18446744073709551616",
            "seed '18446744073709551616'"},
           {"kda.prefill/cp8/production/needle/T=64", "case 'kda.prefill"},
           {"kda.prefill/varlen/production/needle/T=64,cuts=9+9/seed=1", "cuts '9+9'"}}) {
    try {
      parse_case(id);
      ADD_FAILURE() << "accepted " << id;
    } catch (const UsageError& e) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << id << " -> " << e.what();
    }
  }
}

// The formats are a plan's identity: no two named plans share them, and the chain's algorithm is
// read off them.
TEST(Plan, NamesDifferInTheirFormats) {
  for (const auto& a : named_plans())
    for (const auto& b : named_plans())
      EXPECT_EQ(parse_plan(a.name).formats == parse_plan(b.name).formats, a.name == b.name)
          << a.name << " " << b.name;
  const Plan production = parse_plan("production");
  EXPECT_EQ(production[Site::summary_chain], Format::diag_tf32x3);
  EXPECT_EQ(production[Site::merge_dot], Format::ieee);
  EXPECT_EQ(parse_plan("tf32x3+summary.chain=diag_tf32x3+merge.dot=ieee").formats,
            production.formats);
  EXPECT_EQ(production.schedule_sites_at_ieee()[Site::summary_chain], Format::ieee);
}

TEST(CaseId, GlobStarCrossesSlashes) {
  EXPECT_TRUE(glob_match("kda.prefill/*/needle/*", "kda.prefill/cp8/production/needle/T=1/seed=1"));
  EXPECT_FALSE(glob_match("kda.prefill/*/needle", "kda.prefill/cp8/production/needle/T=1/seed=1"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("a?c*", "abcd"));
}

TEST(Schedule, SegmentsCoverTheSequenceOnce) {
  for (const char* word :
       {"sequential", "chunked@100", "cp8", "cp32", "resume@70", "decode", "replay@16"})
    for (std::int64_t T : {1, 2, 7, 64, 100, 1000}) {
      const auto s = parse_schedule(word);
      std::int64_t t = 0;
      for (const auto& piece : segments(s, T)) {
        EXPECT_EQ(piece.begin, t) << word << " T=" << T;
        t = piece.end;
      }
      EXPECT_EQ(t, T) << word;
    }
}

}  // namespace numgate
