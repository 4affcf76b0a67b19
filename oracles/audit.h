// The audit of the truth: the same definitions read in MPFR at 254 bits, over the whole length for
// sampled columns of a state, at sampled tokens for the operands. DESIGN 7.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "oracles/scalars/multiprecision.h"
#include "oracles/spin_barrier.h"
#include "oracles/truth.h"
#include "oracles/truth_operands.h"

namespace numgate {

// A difference fails above kAuditTolerance * norm + kAuditFloor; the floor is for states on their
// way to zero.
inline constexpr double kAuditTolerance = 0x1p-80, kAuditFloor = 0x1p-960;

// The worst comparison so far.
struct AuditRecord {
  double worst_log2 = -std::numeric_limits<double>::infinity();
  std::string where;
  bool failed = false;

  // |double-double - MPFR| against the largest norm so far. `describe` is called only for a new
  // worst.
  template <class Describe>
  void compare(double difference, double norm, Describe describe);
  void merge(const AuditRecord& other);
  // Raises OracleError if any comparison failed.
  void require() const;
};

// |a - b| rounded to double.
double difference(const DD& a, const Mpfr256& b);

// One column of one head's state, walked from the double-double operands.
class ColumnAudit {
 public:
  static constexpr int kParts = 8;  // of the rows: a thread walks one or more

  // `threads` share the rows of a walk and meet at every token; the result does not depend on
  // them. Raises UsageError unless they divide kParts and kParts divides K.
  ColumnAudit(std::int64_t K, std::int64_t head, std::int64_t column, int threads = 1);

  std::int64_t column() const { return column_; }
  std::int64_t head() const { return head_; }
  const AuditRecord& record() const { return record_; }
  void start(std::int64_t d, double value) { S_[static_cast<std::size_t>(d)] = value; }

  // Walks tokens [0, n) of the tile, which stand at t0 in the sequence, and compares o at every
  // token (where there is a query) and, unless S is null, the state after the last. v, o [n] and S
  // [K]: this column of the double-double walk. norm [n]: the largest norm of the state up to each
  // token. Every thread of the team calls it, with its rank, and returns once all are done.
  void walk(int rank, const OperandTile& tile, std::int64_t t0, std::int64_t n, bool query,
            const double* v, const DD* o, const DD* S, const double* norm);
  // Waits for the whole team.
  void meet() { barrier_.wait(); }

 private:
  void compare(const OperandTile& tile, std::int64_t t0, std::int64_t n, bool query, const DD* S,
               const double* norm);

  std::int64_t head_, column_;
  int threads_;
  SpinBarrier barrier_;
  std::vector<Mpfr256> S_;
  std::vector<Mpfr256> reads_;    // [2, part]: of a token and, in use till the next, the one before
  std::vector<Mpfr256> outputs_;  // [token, part]
  std::vector<double> differences_;  // [token]: of o
  AuditRecord record_;
};

// Tokens whose operands are recomputed in MPFR from the raw inputs: about 64, spread evenly over
// log t.
std::vector<std::int64_t> audited_tokens(std::int64_t T);

// Recomputes the operands of the source's token t and compares them with token `at` of the tile,
// element by element. Returns the number of elements.
std::int64_t audit_operands(const OperandSource& source, std::int64_t head, std::int64_t t,
                            const OperandTile& tile, std::int64_t at, AuditRecord& record);

template <class Describe>
void AuditRecord::compare(double difference, double norm, Describe describe) {
  // Written so that a NaN fails.
  const bool agrees = difference <= kAuditTolerance * norm + kAuditFloor;
  const double ratio = difference <= kAuditFloor ? -std::numeric_limits<double>::infinity()
                                                 : std::log2(difference) - std::log2(norm);
  if (agrees && !(ratio > worst_log2)) return;
  if (failed) return;  // the first failure is the one to look at
  failed = !agrees;
  worst_log2 = ratio;
  where = describe();
}

}  // namespace numgate
