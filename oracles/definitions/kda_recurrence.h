// Definition of the KDA recurrence (PIPELINE 2.13) and of what context parallelism makes of it
// (PIPELINE 3.1).
//
//   S~ = Diag(alpha) S,  u = beta (v - S~^T khat),  S' = S~ + khat u^T,  o = S'^T qhat,   alpha =
//   exp(g)
//
// Columns of S are independent given alpha, khat, qhat, beta: a function here walks one column, of
// K rows. `Key` is the scalar of what all columns share, `Column` that of the column, which may be
// a pack of eight columns. A team (team.h) shares the rows of S; it sees alpha, khat and qhat
// whole, through `Keys`: a pointer, or whatever else has an index.
#pragma once
#include <cstdint>

#include "oracles/definitions/team.h"
#include "oracles/scalars/pack.h"
#include "oracles/scalars/real.h"

namespace numgate::definition {

// The steps of a token, for a walker that sums over parts of a column by itself (oracles/audit.h).
// S <- S~; returns what the team's rows add to S~^T khat.
template <class Team, class Keys, class Column>
NUMGATE_INLINE Accumulator<Column> kda_read(const Team& team, std::int64_t K, const Keys& alpha,
                                            const Keys& khat, Column* S) {
  const std::int64_t rows = team.count(K);
  Accumulator<Column> read;
  NUMGATE_UNROLL
  for (std::int64_t j = 0; j < rows; ++j) {
    S[j] *= alpha[team.element(j)];
    add_product(read, khat[team.element(j)], S[j]);
  }
  return read;
}
template <class Key, class Column>
NUMGATE_INLINE Column kda_correction(const Key& beta, const Column& v, const Column& read) {
  return beta * (v - read);
}
// S~ <- S'.
template <class Team, class Keys, class Column>
NUMGATE_INLINE void kda_add(const Team& team, std::int64_t K, const Keys& khat, const Column& u,
                            Column* S) {
  const std::int64_t rows = team.count(K);
  NUMGATE_UNROLL
  for (std::int64_t j = 0; j < rows; ++j) add_product(S[j], khat[team.element(j)], u);
}
// What the team's rows add to o.
template <class Team, class Keys, class Column>
NUMGATE_INLINE Accumulator<Column> kda_output(const Team& team, std::int64_t K, const Keys& qhat,
                                              const Column* S) {
  const std::int64_t rows = team.count(K);
  Accumulator<Column> o;
  NUMGATE_UNROLL
  for (std::int64_t j = 0; j < rows; ++j) add_product(o, qhat[team.element(j)], S[j]);
  return o;
}

// One token without its output: S <- (I - beta khat khat^T) Diag(alpha) S + beta khat v^T.
template <class Team, class Keys, class Key, class Column>
NUMGATE_INLINE void kda_write(const Team& team, std::int64_t K, const Keys& alpha, const Keys& khat,
                              const Key& beta, const Column& v, Column* S) {
  const Column u = kda_correction(beta, v, sum(team, kda_read(team, K, alpha, khat, S)));
  kda_add(team, K, khat, u, S);
}
template <class Key, class Column>
NUMGATE_INLINE void kda_write(std::int64_t K, const Key* alpha, const Key* khat, const Key& beta,
                              const Column& v, Column* S) {
  kda_write(Alone{}, K, alpha, khat, beta, v, S);
}

// One token; returns o.
template <class Team, class Keys, class Key, class Column>
NUMGATE_INLINE Column kda_step(const Team& team, std::int64_t K, const Keys& alpha,
                               const Keys& khat, const Keys& qhat, const Key& beta, const Column& v,
                               Column* S) {
  kda_write(team, K, alpha, khat, beta, v, S);
  return sum(team, kda_output(team, K, qhat, S));
}
template <class Key, class Column>
NUMGATE_INLINE Column kda_step(std::int64_t K, const Key* alpha, const Key* khat, const Key* qhat,
                               const Key& beta, const Column& v, Column* S) {
  return kda_step(Alone{}, K, alpha, khat, qhat, beta, v, S);
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
