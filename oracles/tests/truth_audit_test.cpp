// The audit catches an error planted in the double-double walk or in its operands.
#include "oracles/audit.h"

#include <gtest/gtest.h>

#include "core/errors.h"
#include "oracles/definitions/kda_recurrence.h"
#include "oracles/tests/truth_reference.h"

namespace numgate {
namespace {

constexpr std::int64_t kTokens = 8;

// One column in double-double, audited by `threads`; `corrupt` may spoil the operands that the
// double-double walk sees.
template <class Corrupt>
AuditRecord audited_walk(Corrupt corrupt, int threads = 1) {
  const Case c = test_case("kda.prefill", "T=8,H=1");
  const TensorMap inputs = random_inputs(c);
  const std::int64_t K = c.shape.K, column = 5;
  OperandTile tile(K, kTokens);
  tile.fill({c.shape, inputs, true}, 0, 0, 0, static_cast<int>(kTokens));
  OperandTile spoilt = tile;
  corrupt(spoilt);
  std::vector<DD> S(static_cast<std::size_t>(K), DD(0.0)), o;
  std::vector<double> v, norm(static_cast<std::size_t>(kTokens), 1.0);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    v.push_back(inputs.at("v").at(t * c.shape.V + column));
    o.push_back(definition::kda_step(
        K, spoilt.alpha.data() + t * K, spoilt.khat.data() + t * K, spoilt.qhat.data() + t * K,
        spoilt.beta[static_cast<std::size_t>(t)], DD(v.back()), S.data()));
  }
  ColumnAudit audit(K, 0, column, threads);
  on_team(threads, [&](int rank) {
    audit.walk(rank, tile, 0, kTokens, true, v.data(), o.data(), S.data(), norm.data());
  });
  return audit.record();
}

TEST(Audit, AHealthyColumnAgrees) {
  const AuditRecord record = audited_walk([](OperandTile&) {});
  EXPECT_FALSE(record.failed);
  EXPECT_LT(record.worst_log2, -98);
  EXPECT_NO_THROW(record.require());
}

TEST(Audit, CatchesOneSpoiltDecay) {
  // 2^-70 of one alpha: far below any kernel's error, far above the audit's tolerance.
  const AuditRecord record =
      audited_walk([](OperandTile& t) { t.alpha[3 * 64 + 7] *= DD(1.0 + 0x1p-50, 0.0); });
  EXPECT_TRUE(record.failed);
  EXPECT_THROW(record.require(), OracleError);
  EXPECT_NE(record.where.find("token 3"), std::string::npos) << record.where;
}

TEST(Audit, ALowWordMatters) {
  const AuditRecord record = audited_walk([](OperandTile& t) {
    for (DD& k : t.khat) k.lo = 0;
  });
  EXPECT_TRUE(record.failed);
}

TEST(Audit, ATeamSeesWhatOneThreadSees) {
  const AuditRecord healthy = audited_walk([](OperandTile&) {});
  for (int threads : {1, 2, 4, 8}) {
    const AuditRecord same = audited_walk([](OperandTile&) {}, threads);
    EXPECT_EQ(same.worst_log2, healthy.worst_log2) << threads;
    EXPECT_EQ(same.where, healthy.where);
    const AuditRecord spoilt = audited_walk(
        [](OperandTile& t) { t.khat[4 * 64 + 40] *= DD(1.0 + 0x1p-50, 0.0); }, threads);
    EXPECT_TRUE(spoilt.failed) << threads;
    EXPECT_NE(spoilt.where.find("token 4"), std::string::npos) << spoilt.where;
  }
  EXPECT_THROW(ColumnAudit(64, 0, 0, 3), UsageError);
  EXPECT_THROW(ColumnAudit(68, 0, 0, 4), UsageError);
}

// Over several slabs, of which the last is short.
TEST(Audit, ATeamBesideTheTruthFindsTheSame) {
  const Case c = test_case("kda.prefill", "T=333,H=2,K=128");
  const TensorMap inputs = random_inputs(c);
  TruthOptions options;
  options.audit_threads = 1;
  const AuditResult alone = compute_truth(c, inputs, options).audit;
  EXPECT_EQ(alone.columns, 2);
  for (int threads : {2, 4}) {
    options.audit_threads = threads;
    const AuditResult team = compute_truth(c, inputs, options).audit;
    EXPECT_EQ(team.threads, threads);
    EXPECT_EQ(team.worst_log2, alone.worst_log2);
    EXPECT_EQ(team.worst_where, alone.worst_where);
  }
}

TEST(Audit, CatchesASpoiltOperand) {
  const Case c = test_case("kda.prefill", "T=8,H=1");
  const TensorMap inputs = random_inputs(c);
  const OperandSource source{c.shape, inputs, true};
  OperandTile tile(c.shape.K, kTokens);
  tile.fill(source, 0, 0, 0, static_cast<int>(kTokens));
  AuditRecord record;
  EXPECT_EQ(audit_operands(source, 0, 4, tile, 4, record), 3 * c.shape.K + 1);
  EXPECT_NO_THROW(record.require());
  tile.beta[4].lo += tile.beta[4].hi * 0x1p-75;
  audit_operands(source, 0, 4, tile, 4, record);
  EXPECT_THROW(record.require(), OracleError);
  EXPECT_NE(record.where.find("beta of head 0, token 4"), std::string::npos) << record.where;
}

TEST(Audit, ToleratesWhatIsBelowTheFloorAndRejectsNaN) {
  const auto where = [] { return std::string("here"); };
  AuditRecord record;
  record.compare(0x1p-961, 0, where);
  record.compare(0x1p-81, 1, where);
  EXPECT_FALSE(record.failed);
  EXPECT_EQ(record.worst_log2, -81);
  record.compare(NAN, 1, where);
  EXPECT_TRUE(record.failed);
}

TEST(Audit, TokensAreSpreadOverLogT) {
  EXPECT_EQ(audited_tokens(1), std::vector<std::int64_t>{0});
  const auto tokens = audited_tokens(1 << 20);
  EXPECT_GT(tokens.size(), 50U);
  EXPECT_EQ(tokens.front(), 0);
  EXPECT_EQ(tokens.back(), (1 << 20) - 1);
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end()));
}

}  // namespace
}  // namespace numgate
