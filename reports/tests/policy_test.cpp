#include "reports/policy.h"

#include <gtest/gtest.h>

#include "core/errors.h"
#include "reports/judge.h"
#include "reports/tests/evidence.h"

namespace numgate {
namespace {

// What the message says must name the field and the value.
void expect_error(const std::string& text, const std::string& field, const std::string& value) {
  try {
    parse_policy(text, "2026-06-01");
    ADD_FAILURE() << "accepted: " << text;
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find(field), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(value), std::string::npos) << e.what();
  }
}

std::string waiver(const std::string& members) { return R"({"waivers": [{)" + members + "}]}"; }

TEST(Policy, DefaultsAreThoseOfTheDesign) {
  const Policy& p = default_policy();
  EXPECT_EQ(p.target_context, 1048576);
  EXPECT_EQ(p.thresholds.score, 2);
  EXPECT_EQ(p.thresholds.score_null, 1.25);
  EXPECT_EQ(p.thresholds.token_score, 4);
  EXPECT_EQ(p.thresholds.token_null, 1.5);
  EXPECT_EQ(p.thresholds.excess, 6);
  EXPECT_EQ(p.thresholds.growth, 0.15);
  EXPECT_EQ(p.budget("production:tf32", "near_collinear").value, 1.25e-1);
  EXPECT_EQ(p.budget("reference", "near_collinear").value, 1e-2);
  EXPECT_EQ(p.budget("production", "needle").value, 1e-2);
  for (const ThresholdInfo& info : threshold_infos()) {
    EXPECT_GT(p.thresholds.*info.member, 0) << info.name;
    EXPECT_FALSE(threshold_reason(info.name).empty()) << info.name;
  }
}

TEST(Policy, Overrides) {
  const Policy p = parse_policy(R"({"target_context": 65536,
    "thresholds": {"score": {"value": 1.5, "reason": "measured"}},
    "budgets": [{"plan": "*", "family": "needle", "value": 0.005, "reason": "release"}]})");
  EXPECT_EQ(p.target_context, 65536);
  EXPECT_EQ(p.thresholds.score, 1.5);
  EXPECT_EQ(p.thresholds.excess, 6);
  EXPECT_EQ(p.budget("production", "needle").value, 0.005);
  EXPECT_EQ(p.budget("production", "tiny").value, 1e-2);
}

TEST(Policy, Errors) {
  expect_error("{", "policy", "parse error");
  expect_error("[]", "policy", "[]");
  expect_error(R"({"thresolds": {}})", "policy", "thresolds");
  expect_error(R"({"target_context": 0})", "target_context", "0");
  expect_error(R"({"thresholds": {"score": {"value": 3, "reason": "r"}}})", "thresholds.score",
               "3");
  expect_error(R"({"thresholds": {"loose": {"value": 0.1, "reason": "r"}}})", "thresholds.loose",
               "0.1");
  expect_error(R"({"thresholds": {"score": {"value": "2", "reason": "r"}}})", "score.value",
               "\"2\"");
  expect_error(R"({"thresholds": {"score": {"value": 1}}})", "thresholds.score", "reason");
  expect_error(R"({"budgets": [{"plan": "*", "family": "*", "value": -1, "reason": "r"}]})",
               "budgets[0].value", "-1");
  expect_error(R"({"budgets": [{"plan": "*", "family": "*", "value": 1, "reason": ""}]})",
               "budgets[0].reason", "non-empty");
}

TEST(Policy, WaiversNeedOwnerReasonAndDate) {
  const std::string good =
      R"("case": "*", "rule": "contract", "owner": "o", "reason": "r", "expires": "2026-06-01")";
  EXPECT_EQ(parse_policy(waiver(good), "2026-06-01").waivers.size(), 1u);
  expect_error(waiver(R"("case": "*", "rule": "contract", "reason": "r", "expires": "2027-01-01")"),
               "waivers[0]", "owner");
  expect_error(waiver(R"("case": "*", "rule": "contract", "owner": "o", "expires": "2027-01-01")"),
               "waivers[0]", "reason");
  expect_error(waiver(R"("case": "*", "rule": "contract", "owner": "o", "reason": "r")"),
               "waivers[0]", "expires");
  const auto expiring = [](const std::string& date) {
    return waiver(R"("case": "*", "rule": "contract", "owner": "o", "reason": "r", "expires": ")" +
                  date + "\"");
  };
  expect_error(expiring("2026-05-31"), "expires", "2026-05-31");
  expect_error(expiring("2027-02-30"), "expires", "2027-02-30");
  expect_error(expiring("soon"), "expires", "soon");
  expect_error(
      waiver(
          R"("case": "*", "rule": "oracle", "owner": "o", "reason": "r", "expires": "2027-01-01")"),
      "waivers[0].rule", "oracle");
}

TEST(Policy, WaivedReasonsStayButDoNotFail) {
  CellEvidence evidence = healthy("kda.prefill/sequential/production/needle/T=512/seed=1");
  evidence.health.failures = {"two runs differ"};
  evidence.tensors[0].kernel.squares[2] *= 9;
  Policy policy = default_policy();
  policy.waivers = {{"*/needle/*", "contract", "A. Owner", "known", "2027-01-01"}};
  CellResult cell = judge(evidence, policy);
  apply_waivers(cell, policy);
  EXPECT_EQ(cell.verdict, Verdict::FAIL);
  EXPECT_EQ(reason(cell, "contract").waived_by, "A. Owner");
  EXPECT_TRUE(reason(cell, "health").waived_by.empty());
  policy.waivers.push_back({"*", "health", "A. Owner", "known", "2027-01-01"});
  apply_waivers(cell, policy);
  EXPECT_EQ(cell.verdict, Verdict::PASS);
  EXPECT_EQ(cell.reasons.size(), 2u);
}

}  // namespace
}  // namespace numgate
