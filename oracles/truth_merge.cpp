#include "oracles/truth_merge.h"

#include <Eigen/Dense>
#include <cmath>

#include "core/errors.h"
#include "oracles/audit.h"
#include "oracles/certificate.h"
#include "oracles/definitions/kda_recurrence.h"

namespace numgate {
namespace {

// An upper bound of the 2-norm, at most K^(1/1024) above it: ||A||_2 <= ||(A^T
// A)^(2^n)||_F^(1/2^(n+1)).
double spectral_norm(const Eigen::MatrixXd& A) {
  constexpr int kSquarings = 8;
  Eigen::MatrixXd power = A.transpose() * A;
  double log_norm = 0, weight = 0.5;
  for (int i = 0; i <= kSquarings; ++i, weight /= 2) {
    const double norm = power.norm();
    if (norm == 0) return 0;
    log_norm += weight * std::log(norm);
    power /= norm;
    if (i < kSquarings)
      power = Eigen::MatrixXd(power * power);
    else
      break;
  }
  return std::exp(log_norm) * (1.0 + 0x1p-30);
}

// Columns [first, first + lanes of Column) of one head, folded in place.
template <class Column, class Value>
void fold(std::int64_t K, const std::vector<Value>& M, const std::vector<Column>& B,
          std::vector<Column>& S) {
  std::vector<Column> next(S.size());
  definition::merge(K, M.data(), B.data(), S.data(), next.data());
  S.swap(next);
}

}  // namespace

void merge_summaries(const Shape& shape, const Tensor& M, const Tensor& B, const Tensor* state0,
                     const TruthOptions& options, TruthTensor& state, AuditResult& audit) {
  if (!shape.cuts.empty()) throw UsageError("cuts", shape.text(), "kda.merge takes one sequence");
  if (shape.V % kLanes != 0) throw UsageError("V", shape.text(), "must be a multiple of 8");
  const std::int64_t K = shape.K, V = shape.V, HV = shape.HV;
  const auto rows = static_cast<std::size_t>(K);
  const std::int64_t audits = std::min<std::int64_t>(HV * options.audit_columns, kMaxAuditColumns);
  AuditRecord record;
  for (std::int64_t h = 0; h < HV; ++h) {
    const auto initial = [&](std::int64_t d, std::int64_t c) {
      return state0 ? state0->at((h * K + d) * V + c) : 0.0;
    };
    const bool audited = h * audits / HV != (h - 1) * audits / HV || h == 0;
    const std::int64_t column = (2 * h + 1) * V / (2 * HV);
    std::vector<std::vector<DDPack>> S(static_cast<std::size_t>(V / kLanes),
                                       std::vector<DDPack>(rows));
    std::vector<Mpfr256> exact(rows);
    double square = 0;
    for (std::int64_t d = 0; d < K; ++d) {
      exact[static_cast<std::size_t>(d)] = initial(d, column);
      for (std::int64_t c = 0; c < V; ++c) {
        DDPack& s = S[static_cast<std::size_t>(c / kLanes)][static_cast<std::size_t>(d)];
        s.hi[c % kLanes] = initial(d, c);
        s.lo[c % kLanes] = 0;
        square += initial(d, c) * initial(d, c);
      }
    }
    double norm = std::sqrt(square), largest = norm, radius = 0;
    for (std::int64_t t = 0; t < shape.T; ++t) {
      std::vector<DD> map(rows * rows);
      Eigen::MatrixXd dense(K, K);
      for (std::size_t i = 0; i < map.size(); ++i) {
        const double value = M.at((t * HV + h) * K * K + static_cast<std::int64_t>(i));
        map[i] = value;
        dense.data()[i] = value;  // the transpose, which has the same norms
      }
      const auto offset = [&](std::int64_t d, std::int64_t c) {
        return B.at(((t * HV + h) * K + d) * V + c);
      };
      double offset_square = 0, next_square = 0;
#pragma omp parallel for reduction(+ : offset_square, next_square)
      for (std::int64_t b = 0; b < V / kLanes; ++b) {
        std::vector<DDPack> add(rows);
        for (std::int64_t d = 0; d < K; ++d)
          for (int l = 0; l < kLanes; ++l) {
            const double value = offset(d, b * kLanes + l);
            add[static_cast<std::size_t>(d)].hi[l] = value;
            add[static_cast<std::size_t>(d)].lo[l] = 0;
            offset_square += value * value;
          }
        auto& block = S[static_cast<std::size_t>(b)];
        fold(K, map, add, block);
        for (const DDPack& s : block)
          for (int l = 0; l < kLanes; ++l) next_square += s.hi[l] * s.hi[l];
      }
      radius =
          merge_radius(spectral_norm(dense), dense.norm(), std::sqrt(offset_square), norm, radius);
      norm = std::sqrt(next_square);
      largest = std::max(largest, norm);
      if (audited && audits > 0) {
        std::vector<Mpfr256> exact_map(map.size()), add(rows);
        for (std::size_t i = 0; i < map.size(); ++i) exact_map[i] = map[i].hi;
        for (std::int64_t d = 0; d < K; ++d) add[static_cast<std::size_t>(d)] = offset(d, column);
        fold(K, exact_map, add, exact);
        double worst = 0;
        for (std::int64_t d = 0; d < K; ++d) {
          const DDPack& s =
              S[static_cast<std::size_t>(column / kLanes)][static_cast<std::size_t>(d)];
          const int l = static_cast<int>(column % kLanes);
          worst =
              std::max(worst, difference({s.hi[l], s.lo[l]}, exact[static_cast<std::size_t>(d)]));
        }
        record.compare(worst, largest, [&] {
          return "state of head " + std::to_string(h) + ", column " + std::to_string(column) +
                 ", summary " + std::to_string(t);
        });
      }
    }
    audit.columns += audited && audits > 0 ? 1 : 0;
    for (std::int64_t d = 0; d < K; ++d) {
      const std::int64_t row = h * K + d;
      state.radius[static_cast<std::size_t>(row)] = radius;
      for (std::int64_t c = 0; c < V; ++c) {
        const DDPack& s = S[static_cast<std::size_t>(c / kLanes)][static_cast<std::size_t>(d)];
        state.hi[static_cast<std::size_t>(row * V + c)] = s.hi[c % kLanes];
        if (!state.lo.empty()) state.lo[static_cast<std::size_t>(row * V + c)] = s.lo[c % kLanes];
      }
    }
  }
  record.require();
  audit.worst_log2 = record.worst_log2;
  audit.worst_where = record.where;
}

}  // namespace numgate
