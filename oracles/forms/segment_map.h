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
  using M = typename Sites::M;
  const Index K = c.KgT.values.rows();
  M D = M::Zero(K, K);
  sites.dot(Site::summary_kw, c.KgT, c.W, D);
  Operand<M> chunk{-D};
  chunk.values.diagonal() += c.gamma.values.col(0);
  M diagonal = chunk.values.diagonal();  // off it, 0 - D is exact
  sites.round(Site::summary_kw, diagonal);
  chunk.values.diagonal() = diagonal;
  return chunk;
}

// A segment's matrix M, or columns of it, after one more chunk.
template <class Sites>
NUMGATE_HOST_DEVICE void chain(Sites& sites, const Operand<typename Sites::M>& chunk,
                               Operand<typename Sites::M>& M) {
  using Matrix = typename Sites::M;
  Matrix next = Matrix::Zero(M.values.rows(), M.values.cols());
  sites.dot(Site::summary_chain, chunk, M, next);
  M = {std::move(next)};
}

// The map of a segment that one more chunk has joined.
template <class Sites>
void extend(Sites& sites, const ChunkOperands<typename Sites::M>& c,
            SegmentMap<typename Sites::M>& map) {
  state_pass<Sites>(sites, c, map.B, nullptr);
  chain(sites, chunk_matrix(sites, c), map.M);
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
