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

ColumnAudit::ColumnAudit(std::int64_t K, std::int64_t head, std::int64_t column, int threads)
    : head_(head),
      column_(column),
      threads_(threads),
      barrier_(threads),
      S_(static_cast<std::size_t>(K)),
      reads_(2 * kParts) {
  if (K % kParts != 0 || threads < 1 || kParts % threads != 0)
    throw UsageError("audit", std::to_string(threads) + " threads, K=" + std::to_string(K),
                     "threads must divide " + std::to_string(kParts) + ", and that must divide K");
}

// Every part of the rows has sums of its own, added up in one order: the bits are those of any
// number of threads.
void ColumnAudit::walk(int rank, const OperandTile& tile, std::int64_t t0, std::int64_t n,
                       bool query, const double* v, const DD* o, const DD* S, const double* norm) {
  const std::int64_t K = tile.K, rows = K / kParts, share = kParts / threads_, first = rank * share,
                     mine = share * rows;
  const auto total = [](const Mpfr256* parts) {
    Mpfr256 sum = parts[0];
    for (int p = 1; p < kParts; ++p) sum += parts[p];
    return sum;
  };
  std::vector<Mpfr256> alpha(static_cast<std::size_t>(mine)), khat(alpha), qhat(alpha);
  const auto convert = [&](const std::vector<DD>& from, std::int64_t token,
                           std::vector<Mpfr256>& to) {
    for (std::int64_t j = 0; j < mine; ++j)
      assign_exactly(to[static_cast<std::size_t>(j)],
                     from[static_cast<std::size_t>(token * K + first * rows + j)]);
  };
  if (rank == 0 && query) {  // the others use them past the first token's barrier
    outputs_.resize(static_cast<std::size_t>(n * kParts));
    differences_.resize(static_cast<std::size_t>(n));
  }
  const definition::Alone alone;
  Mpfr256* column = S_.data() + first * rows;
  for (std::int64_t i = 0; i < n; ++i) {
    Mpfr256* read = reads_.data() + i % 2 * kParts;
    convert(tile.alpha, i, alpha);
    convert(tile.khat, i, khat);
    for (std::int64_t p = 0; p < share; ++p)
      read[first + p] = definition::kda_read(alone, rows, alpha.data() + p * rows,
                                             khat.data() + p * rows, column + p * rows)
                            .value();
    barrier_.wait();
    const Mpfr256 u = definition::kda_correction(
        exactly<Mpfr256>(tile.beta[static_cast<std::size_t>(i)]), Mpfr256(v[i]), total(read));
    definition::kda_add(alone, mine, khat.data(), u, column);
    if (!query) continue;
    convert(tile.qhat, i, qhat);
    for (std::int64_t p = 0; p < share; ++p)
      outputs_[static_cast<std::size_t>(i * kParts + first + p)] =
          definition::kda_output(alone, rows, qhat.data() + p * rows, column + p * rows).value();
  }
  barrier_.wait();
  for (std::int64_t i = rank * n / threads_; query && i < (rank + 1) * n / threads_; ++i)
    differences_[static_cast<std::size_t>(i)] =
        difference(o[i], total(&outputs_[static_cast<std::size_t>(i * kParts)]));
  barrier_.wait();
  if (rank == 0) compare(tile, t0, n, query, S, norm);
  barrier_.wait();
}

void ColumnAudit::compare(const OperandTile& tile, std::int64_t t0, std::int64_t n, bool query,
                          const DD* S, const double* norm) {
  const auto here = [&](const char* what, std::int64_t i) {
    return std::string(what) + " of head " + std::to_string(head_) + ", column " +
           std::to_string(column_) + ", token " + std::to_string(t0 + i);
  };
  for (std::int64_t i = 0; query && i < n; ++i)
    record_.compare(differences_[static_cast<std::size_t>(i)],
                    tile.norms[static_cast<std::size_t>(i)].qhat * norm[i],
                    [&] { return here("o", i); });
  if (S == nullptr) return;
  double worst = 0;
  for (std::int64_t d = 0; d < tile.K; ++d) {
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
