// Context parallelism: a segment of tokens is the affine map S -> M S + B (PIPELINE 3.1, KDA_CP 2).
#pragma once
#include "oracles/forms/chunked.h"

namespace numgate::forms {

template <class Real>
struct SegmentMap {
  Operand<Real> M, B;  // [K K], [K V]

  static SegmentMap identity(Eigen::Index K, Eigen::Index V) {
    return {{Matrix<Real>::Identity(K, K)}, {Matrix<Real>::Zero(K, V)}};
  }
};

// M <- (Diag(gamma) - Kg^T W) M as one dense product: its format rounds the decay, too.
template <class Sites>
void extend_dense(Sites& sites, const ChunkOperands<typename Sites::Real>& c,
                  Operand<typename Sites::Real>& M) {
  using Real = typename Sites::Real;
  const Eigen::Index K = M.values.rows();
  Matrix<Real> D = Matrix<Real>::Zero(K, K);
  sites.dot(Site::summary_kw, c.KgT, c.W, D);
  Operand<Real> chunk{-D};
  chunk.values.diagonal() += c.gamma.values.col(0);
  Matrix<Real> diagonal = chunk.values.diagonal();  // off it, 0 - D is exact
  sites.round(Site::summary_kw, diagonal);
  chunk.values.diagonal() = diagonal;
  Matrix<Real> next = Matrix<Real>::Zero(K, K);
  sites.dot(Site::summary_chain, chunk, M, next);
  M = {std::move(next)};
}

// M <- Diag(gamma) M - Kg^T (W M): the decay is one fp32 fma an element, as in the state pass.
template <class Sites>
void extend_diagonal(Sites& sites, const ChunkOperands<typename Sites::Real>& c,
                     Operand<typename Sites::Real>& M) {
  using Real = typename Sites::Real;
  const Eigen::Index K = M.values.rows();
  Operand<Real> X{Matrix<Real>::Zero(c.W.values.rows(), K)};
  sites.dot(Site::summary_chain, c.W, M, X.values);
  Matrix<Real> low_rank = Matrix<Real>::Zero(K, K);
  sites.dot(Site::summary_chain, c.KgT, X, low_rank);
  M.values = c.gamma.values.col(0).asDiagonal() * M.values - low_rank;
  sites.round(Site::summary_chain, M.values);
}

// The map of a segment that one more chunk has joined.
template <class Sites>
void extend(Sites& sites, const ChunkOperands<typename Sites::Real>& c,
            SegmentMap<typename Sites::Real>& map) {
  state_pass<Sites>(sites, c, map.B, nullptr);
  if (sites.format(Site::summary_chain) == Format::diag_tf32x3)
    extend_diagonal(sites, c, map.M);
  else
    extend_dense(sites, c, map.M);
}

// What a rank sends: its map in the format of `handoff`.
template <class Sites>
void publish(Sites& sites, SegmentMap<typename Sites::Real>& map) {
  sites.store(Site::handoff, map.M);
  sites.store(Site::handoff, map.B);
}

// F <- M F + B.
template <class Sites>
void merge(Sites& sites, const SegmentMap<typename Sites::Real>& map,
           Operand<typename Sites::Real>& F) {
  using Real = typename Sites::Real;
  Operand<Real> next{Matrix<Real>::Zero(F.values.rows(), F.values.cols())};
  sites.dot(Site::merge_dot, map.M, F, next.values);
  next.values += map.B.values;
  sites.round(Site::merge_dot, next.values);
  sites.store(Site::handoff, next);
  F = std::move(next);
}

}  // namespace numgate::forms
