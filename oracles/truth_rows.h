// Stages whose output rows are independent: each row in double-double, with a radius, some audited
// in MPFR.
#pragma once
#include <omp.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "oracles/audit.h"
#include "oracles/certificate.h"
#include "oracles/truth.h"
#include "oracles/truth_operands.h"

namespace numgate {

// `stage.rows(row, count, y)`, a template over the scalar, writes rows row, row + 1, ..., one a
// lane, to y [row size]. The radius of a row is `error` times its magnitude: `stage.magnitude(row)`
// where the stage has one, else the largest |y|. y is allocated by the caller. Raises OracleError
// if an audited row fails.
template <class Stage>
void run_rows(const Stage& stage, double error, const TruthOptions& options, TruthTensor& y,
              AuditResult& result) {
  const std::int64_t size = y.shape.back(), rows = static_cast<std::int64_t>(y.radius.size());
  const int threads = options.threads > 0 ? options.threads : omp_get_max_threads();
  const auto magnitude = [&](std::int64_t r) {
    if constexpr (requires { stage.magnitude(r); }) return stage.magnitude(r);
    double largest = 0;
    for (std::int64_t i = 0; i < size; ++i)
      largest = std::max(largest, std::abs(y.hi[static_cast<std::size_t>(r * size + i)]));
    return largest;
  };
  std::vector<std::int64_t> audited;
  if (options.audit_columns > 0) audited = audited_tokens(rows);
  std::vector<DD> kept(audited.size() * static_cast<std::size_t>(size));

#pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (std::int64_t first = 0; first < rows; first += kLanes) {
    thread_local std::vector<DDPack> out;
    out.resize(static_cast<std::size_t>(size));
    const auto count = static_cast<int>(std::min<std::int64_t>(kLanes, rows - first));
    stage.rows(first, count, out.data());
    for (int l = 0; l < count; ++l) {
      const std::int64_t r = first + l;
      const auto audit = std::lower_bound(audited.begin(), audited.end(), r);
      const bool keep = audit != audited.end() && *audit == r;
      for (std::int64_t i = 0; i < size; ++i) {
        const DDPack& value = out[static_cast<std::size_t>(i)];
        const auto at = static_cast<std::size_t>(r * size + i);
        y.hi[at] = value.hi[l];
        if (!y.lo.empty()) y.lo[at] = value.lo[l];
        if (keep)
          kept[static_cast<std::size_t>((audit - audited.begin()) * size + i)] = {value.hi[l],
                                                                                  value.lo[l]};
      }
      y.radius[static_cast<std::size_t>(r)] = error * magnitude(r) + kSmallestRadius;
    }
  }

  AuditRecord record;
  std::vector<Mpfr256> exact(static_cast<std::size_t>(size));
  for (std::size_t a = 0; a < audited.size(); ++a) {
    stage.rows(audited[a], 1, exact.data());
    for (std::size_t i = 0; i < exact.size(); ++i)
      record.compare(difference(kept[a * exact.size() + i], exact[i]), magnitude(audited[a]), [&] {
        return "row " + std::to_string(audited[a]) + ", element " + std::to_string(i);
      });
    result.prepared += size;
  }
  record.require();
  result.worst_log2 = record.worst_log2;
  result.worst_where = record.where;
}

}  // namespace numgate
