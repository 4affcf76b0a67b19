#include "oracles/audit.h"

#include <cmath>

#include "core/errors.h"
#include "oracles/definitions/kda_recurrence.h"

namespace numgate {

void AuditRecord::merge(const AuditRecord& other) {
  if (failed || (!other.failed && !(other.worst_log2 > worst_log2))) return;
  *this = other;
}

void AuditRecord::require() const {
  if (failed)
    throw OracleError("the audit of the truth failed: double-double and MPFR differ by 2^" +
                      std::to_string(worst_log2) + " of the largest norm at " + where +
                      ", allowed is 2^-80");
}

double difference(const DD& a, const Mpfr256& b) {
  Mpfr256 d;
  assign_exactly(d, a);
  d -= b;
  return std::abs(to_double(d));
}

void ColumnAudit::walk(const OperandTile& tile, std::int64_t t0, std::int64_t n, bool query,
                       const double* v, const DD* o, const DD* S, const double* norm) {
  const std::int64_t K = tile.K;
  thread_local std::vector<Mpfr256> alpha, khat, qhat;
  const auto convert = [K](const std::vector<DD>& from, std::int64_t token,
                           std::vector<Mpfr256>& to) {
    to.resize(static_cast<std::size_t>(K));
    for (std::int64_t d = 0; d < K; ++d)
      assign_exactly(to[static_cast<std::size_t>(d)],
                     from[static_cast<std::size_t>(token * K + d)]);
  };
  const auto here = [&](const char* what, std::int64_t i) {
    return std::string(what) + " of head " + std::to_string(head_) + ", column " +
           std::to_string(column_) + ", token " + std::to_string(t0 + i);
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const auto token = static_cast<std::size_t>(i);
    convert(tile.alpha, i, alpha);
    convert(tile.khat, i, khat);
    const Mpfr256 beta = exactly<Mpfr256>(tile.beta[token]), value(v[i]);
    if (!query) {
      definition::kda_write(K, alpha.data(), khat.data(), beta, value, S_.data());
      continue;
    }
    convert(tile.qhat, i, qhat);
    const Mpfr256 out =
        definition::kda_step(K, alpha.data(), khat.data(), qhat.data(), beta, value, S_.data());
    record_.compare(difference(o[i], out), tile.norms[token].qhat * norm[i],
                    [&] { return here("o", i); });
  }
  double worst = 0;
  for (std::int64_t d = 0; d < K; ++d) {
    const double e = difference(S[d], S_[static_cast<std::size_t>(d)]);
    if (!(e <= worst)) worst = e;
  }
  record_.compare(worst, norm[n - 1], [&] { return here("state", n - 1); });
}

std::vector<std::int64_t> audited_tokens(std::int64_t T) {
  constexpr int kTokens = 64;
  std::vector<std::int64_t> tokens;
  for (int i = 0; i < kTokens; ++i) {
    const double position = std::exp2(std::log2(static_cast<double>(T)) * (i + 1) / kTokens) - 1.0;
    const auto t = std::min(T - 1, static_cast<std::int64_t>(position));
    if (tokens.empty() || t > tokens.back()) tokens.push_back(t);
  }
  return tokens;
}

std::int64_t audit_operands(const OperandSource& source, std::int64_t head, std::int64_t t,
                            const OperandTile& tile, std::int64_t at, AuditRecord& record) {
  Operands<Mpfr256> exact;
  source.prepare(head, t, 1, exact);
  std::int64_t compared = 0;
  const auto check = [&](const char* what, const DD& x, const Mpfr256& y) {
    ++compared;
    record.compare(difference(x, y), std::abs(to_double(y)), [&] {
      return std::string(what) + " of head " + std::to_string(head) + ", token " +
             std::to_string(t);
    });
  };
  for (std::int64_t d = 0; d < tile.K; ++d) {
    const auto i = static_cast<std::size_t>(d), j = static_cast<std::size_t>(at * tile.K + d);
    check("alpha", tile.alpha[j], exact.alpha[i]);
    check("khat", tile.khat[j], exact.khat[i]);
    if (source.has_query()) check("qhat", tile.qhat[j], exact.qhat[i]);
  }
  check("beta", tile.beta[static_cast<std::size_t>(at)], exact.beta);
  return compared;
}

}  // namespace numgate
