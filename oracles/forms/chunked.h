// Chunked KDA: what a prefill kernel computes for one chunk of at most 64 tokens of one head
// (PIPELINE 2.13a). First the chunk's operands, which need no state; then the pass over the carried
// state.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>

#include "oracles/forms/sites.h"

namespace numgate::forms {

inline constexpr Index kChunk = 64, kSubChunk = 16;

// Constants that a kernel keeps in fp32.
template <class Real>
struct Constants {
  Real log2e, query_scale;  // log2(e), K^-1/2

  template <class Sites>
  static Constants make(Sites& sites, Index K) {
    using std::sqrt;
    return {sites.constant(Site::cumsum, log2_of_e<Real>()),
            sites.constant(Site::norm, Real(sqrt(Real(1.0) / Real(double(K)))))};
  }
};

// n tokens of one head after the scalar stages: qhat (scaled), khat, g [n K], v [n V], beta [n 1].
template <class M>
struct ChunkInputs {
  M q, k, v, g, beta;
  NUMGATE_HOST_DEVICE Index tokens() const { return q.rows(); }
};

// What a chunk is to the state: o = Qg S + Aqk (U - W S), S <- Diag(gamma) S + Kg^T (U - W S).
template <class M>
struct ChunkOperands {
  Operand<M> U, W;          // [n V], [n K]
  Operand<M> KgT, Qg, Aqk;  // [K n], [n K], [n n] lower triangular
  Operand<M> gamma;         // [K 1]
};

template <class M>
struct Products {
  M kk, qk;  // beta_i k_i . k_j decayed for i > j; q_i . k_j decayed for i >= j
};

// k k^T and q k^T with every pair's decay. Only differences of G with i >= j are exponentiated, so
// nothing overflows: off the diagonal both sides refer to the first row of the left block.
template <class Sites>
NUMGATE_HOST_DEVICE Products<typename Sites::M> decayed_products(
    Sites& sites, const ChunkInputs<typename Sites::M>& in, const typename Sites::M& G) {
  using M = typename Sites::M;
  const Index n = in.tokens(), K = in.k.cols();
  Products<M> out{M::Zero(n, n), M::Zero(n, n)};
  const M kT = in.k.transpose(), GT = G.transpose();
  for (Index n0 = 0; n0 < n; n0 += kSubChunk) {
    const Index rows = std::min(Index{kSubChunk}, n - n0);
    if (n0 > 0) {
      M decay = G.middleRows(n0, rows) - G.row(n0).replicate(rows, 1);
      sites.round(Site::cumsum, decay);
      sites.exp2(Site::akk_dot, decay);
      Operand<M> a{in.k.middleRows(n0, rows)}, qa{in.q.middleRows(n0, rows)}, b{kT.leftCols(n0)};
      sites.multiply(Site::akk_dot, a.values, decay);
      sites.multiply(Site::aqk_dot, qa.values, decay);
      M growth = GT.col(n0).replicate(1, n0) - GT.leftCols(n0);
      sites.round(Site::cumsum, growth);
      sites.exp2(Site::akk_dot, growth);
      sites.multiply(Site::akk_dot, b.values, growth);
      M kk = M::Zero(rows, n0), qk = M::Zero(rows, n0);
      sites.dot(Site::akk_dot, a, b, kk);
      sites.dot(Site::aqk_dot, qa, b, qk);
      out.kk.block(n0, 0, rows, n0) = kk;
      out.qk.block(n0, 0, rows, n0) = qk;
    }
    for (Index i = n0; i < n0 + rows; ++i) {
      const Index cols = i - n0 + 1;
      M decay = GT.col(i).replicate(1, cols) - GT.middleCols(n0, cols);
      sites.round(Site::cumsum, decay);
      sites.exp2(Site::diag_dot, decay);
      Operand<M> left{M(2, K)}, right{kT.middleCols(n0, cols)};
      left.values.row(0) = in.k.row(i);
      left.values.row(1) = in.q.row(i);
      sites.multiply(Site::diag_dot, right.values, decay);
      M pair = M::Zero(2, cols);
      sites.dot(Site::diag_dot, left, right, pair);
      out.kk.block(i, n0, 1, cols - 1) = pair.row(0).head(cols - 1);
      out.qk.block(i, n0, 1, cols) = pair.row(1);
    }
  }
  const M beta = in.beta.replicate(1, n);
  sites.multiply(Site::akk_dot, out.kk, beta);
  return out;
}

// (I + A)^-1 for strictly lower triangular A: forward substitution in blocks of 16, then block
// rows.
template <class Sites>
NUMGATE_HOST_DEVICE typename Sites::M unit_lower_inverse(Sites& sites, const typename Sites::M& A) {
  using M = typename Sites::M;
  const Index n = A.rows();
  M T = M::Zero(n, n);  // without its diagonal of ones, whose products are exact, until the end
  for (Index n0 = 0; n0 < n; n0 += kSubChunk) {
    const Index rows = std::min(Index{kSubChunk}, n - n0);
    for (Index i = 1; i < rows; ++i) {
      M row = A.block(n0 + i, n0, 1, i);
      sites.fma_dot(Site::inverse, row.eval(), T.block(n0, n0, i, i), row);
      T.block(n0 + i, n0, 1, i) = -row;
    }
  }
  T.diagonal().setOnes();
  for (Index n0 = kSubChunk; n0 < n; n0 += kSubChunk) {
    const Index rows = std::min(Index{kSubChunk}, n - n0);
    M X = M::Zero(rows, n0), Y = M::Zero(rows, n0);
    sites.dot(Site::inverse, {A.block(n0, 0, rows, n0)}, {T.topLeftCorner(n0, n0)}, X);
    sites.dot(Site::inverse, {T.block(n0, n0, rows, rows)}, {X}, Y);
    T.block(n0, 0, rows, n0) = -Y;
  }
  return T;
}

template <class Sites>
NUMGATE_HOST_DEVICE ChunkOperands<typename Sites::M> chunk_operands(
    Sites& sites, const Constants<typename Sites::Real>& constants,
    const ChunkInputs<typename Sites::M>& in) {
  using M = typename Sites::M;
  const Index n = in.tokens(), K = in.k.cols(), V = in.v.cols();
  ChunkOperands<M> out;

  M gl = in.g * constants.log2e, G(n, K);
  sites.round(Site::cumsum, gl);
  M sum = M::Zero(1, K);
  for (Index r = 0; r < n; ++r) {
    sum += gl.row(r);
    if (r > 0) sites.round(Site::cumsum, sum);  // 0 + x is exact
    Operand<M> kept{sum};
    sites.store(Site::cumsum, kept);
    sum = kept.values;
    G.row(r) = sum;
  }

  auto [kk, qk] = decayed_products(sites, in, G);
  out.Aqk.values = std::move(qk);
  sites.store(Site::aqk_store, out.Aqk);
  const Operand<M> T{unit_lower_inverse(sites, kk)};

  M decay = G, to_end = G.row(n - 1).replicate(n, 1) - G;
  sites.exp2(Site::qg_store, decay);
  sites.round(Site::cumsum, to_end);
  sites.exp2(Site::kg_store, to_end);

  Operand<M> bv{in.v}, bk{in.k};
  const M beta_v = in.beta.replicate(1, V), beta_k = in.beta.replicate(1, K);
  sites.multiply(Site::u_dot, bv.values, beta_v);
  sites.multiply(Site::w_dot, bk.values, beta_k);
  sites.multiply(Site::w_dot, bk.values, decay);
  out.U.values.setZero(n, V);
  out.W.values.setZero(n, K);
  sites.dot(Site::u_dot, T, bv, out.U.values);
  sites.dot(Site::w_dot, T, bk, out.W.values);
  sites.store(Site::u_store, out.U);
  sites.store(Site::w_store, out.W);

  M kg = in.k;
  sites.multiply(Site::kg_store, kg, to_end);
  out.KgT.values = kg.transpose();
  sites.store(Site::kg_store, out.KgT);
  out.Qg.values = in.q;
  sites.multiply(Site::qg_store, out.Qg.values, decay);
  sites.store(Site::qg_store, out.Qg);

  out.gamma.values = G.row(n - 1).transpose();
  sites.exp2(Site::gamma, out.gamma.values);
  sites.store(Site::gamma, out.gamma);
  return out;
}

// S [K V] through one chunk; `o` [n V] is the output before its cast, or null where none is wanted.
template <class Sites>
NUMGATE_HOST_DEVICE void state_pass(Sites& sites, const ChunkOperands<typename Sites::M>& c,
                                    Operand<typename Sites::M>& S, typename Sites::M* o) {
  using M = typename Sites::M;
  const Index n = c.U.values.rows(), V = c.U.values.cols();
  Operand<M> h = S;
  sites.store(Site::h_store, h);
  M ws = M::Zero(n, V);
  sites.dot(Site::ws_dot, c.W, h, ws);
  Operand<M> v_new{c.U.values - ws};
  sites.round(Site::vnew_store, v_new.values);
  sites.store(Site::vnew_store, v_new);
  if (o) {
    o->setZero(n, V);
    sites.dot(Site::qs_dot, c.Qg, h, *o);
    sites.dot(Site::av_dot, c.Aqk, v_new, *o);
  }
  M d = M::Zero(S.values.rows(), V);
  sites.dot(Site::kv_dot, c.KgT, v_new, d);
  // The running state stays outside the tensor core: one fp32 fma per element and chunk.
  sites.state(S, c.gamma.values.col(0).asDiagonal() * S.values + d);
}

}  // namespace numgate::forms
