// Definition of the KDA recurrence (PIPELINE 2.13) and of what context parallelism makes of it
// (PIPELINE 3.1).
//
//   S~ = Diag(alpha) S,  u = beta (v - S~^T khat),  S' = S~ + khat u^T,  o = S'^T qhat,   alpha =
//   exp(g)
//
// Columns of S are independent given alpha, khat, qhat, beta: a function here walks one column, of
// K rows. `Key` is the scalar of what all columns share, `Column` that of the column, which may be
// a pack of eight columns.
#pragma once
#include <cstdint>

#include "oracles/scalars/pack.h"
#include "oracles/scalars/real.h"

namespace numgate::definition {

// One token without its output: S <- (I - beta khat khat^T) Diag(alpha) S + beta khat v^T.
template <class Key, class Column>
NUMGATE_INLINE void kda_write(std::int64_t K, const Key* alpha, const Key* khat, const Key& beta,
                              const Column& v, Column* S) {
  Accumulator<Column> read;
  for (std::int64_t d = 0; d < K; ++d) {
    S[d] *= alpha[d];
    add_product(read, khat[d], S[d]);
  }
  const Column u = beta * (v - read.value());
  for (std::int64_t d = 0; d < K; ++d) add_product(S[d], khat[d], u);
}

// One token; returns o.
template <class Key, class Column>
NUMGATE_INLINE Column kda_step(std::int64_t K, const Key* alpha, const Key* khat, const Key* qhat,
                               const Key& beta, const Column& v, Column* S) {
  kda_write(K, alpha, khat, beta, v, S);
  Accumulator<Column> o;
  for (std::int64_t d = 0; d < K; ++d) add_product(o, qhat[d], S[d]);
  return o.value();
}

// kda.summary: the map S -> M S + B of T tokens. A column of M is kda_write walked with v = 0 from
// a column of the identity, a column of B is kda_write walked with v from zero. alpha, khat [T, K],
// beta, v [T], column [K].
template <class Key, class Column>
void segment_map(std::int64_t T, std::int64_t K, const Key* alpha, const Key* khat, const Key* beta,
                 const Column* v, Column* column) {
  for (std::int64_t t = 0; t < T; ++t)
    kda_write(K, alpha + t * K, khat + t * K, beta[t], v[t], column);
}

// kda.merge, one summary onto one column: out = M S + B. M [K, K] row-major.
template <class Key, class Column>
void merge(std::int64_t K, const Key* M, const Column* B, const Column* S, Column* out) {
  for (std::int64_t d = 0; d < K; ++d) {
    Accumulator<Column> row;
    for (std::int64_t j = 0; j < K; ++j) add_product(row, M[d * K + j], S[j]);
    out[d] = row.value() + B[d];
  }
}

}  // namespace numgate::definition
