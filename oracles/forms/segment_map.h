// Context parallelism: a segment of tokens is the affine map S -> M S + B (PIPELINE 3.1, KDA_CP 2).
#pragma once
#include "oracles/forms/chunked.h"

namespace numgate::forms {

template <class Matrix>
struct SegmentMap {
  Operand<Matrix> M, B;  // [K K], [K V]

  static SegmentMap identity(Index K, Index V) {
    return {{Matrix::Identity(K, K)}, {Matrix::Zero(K, V)}};
  }
};

// A chunk's own matrix Diag(gamma) - Kg^T W [K K].
template <class Sites>
NUMGATE_HOST_DEVICE Operand<typename Sites::M> chunk_matrix(
    Sites& sites, const ChunkOperands<typename Sites::M>& c) {
  using Matrix = typename Sites::M;
  const Index K = c.KgT.values.rows();
  Matrix D = Matrix::Zero(K, K);
  sites.dot(Site::summary_kw, c.KgT, c.W, D);
  Operand<Matrix> chunk{-D};
  chunk.values.diagonal() += c.gamma.values.col(0);
  Matrix diagonal = chunk.values.diagonal();  // off it, 0 - D is exact
  sites.round(Site::summary_kw, diagonal);
  chunk.values.diagonal() = diagonal;
  return chunk;
}

// M, or columns of it, <- chunk M as one dense product: its format rounds the decay, too.
template <class Sites>
NUMGATE_HOST_DEVICE void extend_dense(Sites& sites, const Operand<typename Sites::M>& chunk,
                                      Operand<typename Sites::M>& M) {
  using Matrix = typename Sites::M;
  Matrix next = Matrix::Zero(M.values.rows(), M.values.cols());
  sites.dot(Site::summary_chain, chunk, M, next);
  M = {std::move(next)};
}

// M, or columns of it, <- Diag(gamma) M - Kg^T (W M): the decay is one fp32 fma an element, as in
// the state pass.
template <class Sites>
NUMGATE_HOST_DEVICE void extend_diagonal(Sites& sites, const ChunkOperands<typename Sites::M>& c,
                                         Operand<typename Sites::M>& M) {
  using Matrix = typename Sites::M;
  Operand<Matrix> X{Matrix::Zero(c.W.values.rows(), M.values.cols())};
  sites.dot(Site::summary_chain, c.W, M, X.values);
  Matrix low_rank = Matrix::Zero(M.values.rows(), M.values.cols());
  sites.dot(Site::summary_chain, c.KgT, X, low_rank);
  M.values = c.gamma.values.col(0).asDiagonal() * M.values - low_rank;
  sites.round(Site::summary_chain, M.values);
}

template <class Sites>
NUMGATE_HOST_DEVICE bool is_diagonal(const Sites& sites) {
  return sites.format(Site::summary_chain) == Format::diag_tf32x3;
}

// The map of a segment that one more chunk has joined.
template <class Sites>
void extend(Sites& sites, const ChunkOperands<typename Sites::M>& c,
            SegmentMap<typename Sites::M>& map) {
  state_pass<Sites>(sites, c, map.B, nullptr);
  if (is_diagonal(sites))
    extend_diagonal(sites, c, map.M);
  else
    extend_dense(sites, chunk_matrix(sites, c), map.M);
}

// What a rank sends: its map in the format of `handoff`.
template <class Sites>
void publish(Sites& sites, SegmentMap<typename Sites::M>& map) {
  sites.store(Site::handoff, map.M);
  sites.store(Site::handoff, map.B);
}

// F <- M F + B.
template <class Sites>
void merge(Sites& sites, const SegmentMap<typename Sites::M>& map, Operand<typename Sites::M>& F) {
  using M = typename Sites::M;
  Operand<M> next{M::Zero(F.values.rows(), F.values.cols())};
  sites.dot(Site::merge_dot, map.M, F, next.values);
  next.values += map.B.values;
  sites.round(Site::merge_dot, next.values);
  sites.store(Site::handoff, next);
  F = std::move(next);
}

}  // namespace numgate::forms
