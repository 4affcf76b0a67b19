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
  bool bounded_gate = true;  // -5 <= g <= 0
  NUMGATE_HOST_DEVICE Index tokens() const { return q.rows(); }
};

// What a chunk is to the state: o = Qg S + Aqk (U - W S), S <- Diag(gamma) S + Kg^T (U - W S).
template <class M>
struct ChunkOperands {
  Operand<M> U, W;          // [n V], [n K]
  Operand<M> KgT, Qg, Aqk;  // [K n], [n K], [n n] lower triangular
  Operand<M> gamma;         // [K 1]
};

// Decays inside a chunk. `factored`: every decay of a pair is a product, those inside a sub-chunk
// too, for which a key carries the inverse of its decay; a bounded gate keeps that below 2^116.
template <class M>
struct ChunkDecays {
  bool factored;
  M L;      // [n K] log2 decay from the start of the token's sub-chunk up to the token
  M total;  // [sub-chunks K] log2 decay of whole sub-chunks
  M enter;  // [n K] exp2 L
  M right;  // [n K] exp2(total - L): to the end of the sub-chunk; factored: exp2(-L)
};

template <class Sites>
NUMGATE_HOST_DEVICE ChunkDecays<typename Sites::M> chunk_decays(
    Sites& sites, const Constants<typename Sites::Real>& constants, const typename Sites::M& g,
    bool bounded_gate) {
  using M = typename Sites::M;
  const Index n = g.rows(), K = g.cols();
  const bool factored = bounded_gate && sites.format(Site::diag_dot) != Format::ieee;
  M gl = g * constants.log2e;
  sites.round(Site::cumsum, gl);
  ChunkDecays<M> out{factored, M(n, K), M((n + kSubChunk - 1) / kSubChunk, K), {}, M(n, K)};
  for (Index n0 = 0; n0 < n; n0 += kSubChunk) {
    const Index rows = std::min(Index{kSubChunk}, n - n0);
    M sum = M::Zero(1, K);
    for (Index r = n0; r < n0 + rows; ++r) {
      sum += gl.row(r);
      if (r > n0) sites.round(Site::cumsum, sum);  // 0 + x is exact
      Operand<M> kept{sum};
      sites.store(Site::cumsum, kept);
      sum = kept.values;
      out.L.row(r) = sum;
    }
    out.total.row(n0 / kSubChunk) = sum;
    if (factored) sum.setZero();
    out.right.middleRows(n0, rows) = sum.replicate(rows, 1) - out.L.middleRows(n0, rows);
  }
  out.enter = out.L;
  sites.exp2(Site::cumsum, out.enter);
  if (!factored) sites.round(Site::cumsum, out.right);
  sites.exp2(Site::cumsum, out.right);
  return out;
}

// Decay [1 K] across the sub-chunks [first, last).
template <class Sites>
NUMGATE_HOST_DEVICE typename Sites::M decay_across(Sites& sites,
                                                   const ChunkDecays<typename Sites::M>& decays,
                                                   Index first, Index last) {
  typename Sites::M sum = Sites::M::Zero(1, decays.total.cols());
  for (Index b = first; b < last; ++b) {
    sum += decays.total.row(b);
    if (b > first) sites.round(Site::cumsum, sum);
  }
  sites.exp2(Site::cumsum, sum);
  return sum;
}

template <class M>
struct Products {
  M kk, qk;  // beta_i k_i . k_j decayed for i > j; q_i . k_j decayed for i >= j
};

// c = a b as two sums over the halves of k, which two warps form.
template <class Sites>
NUMGATE_HOST_DEVICE void halves_dot(Sites& sites, Site site, const Operand<typename Sites::M>& a,
                                    const Operand<typename Sites::M>& b, typename Sites::M& c) {
  using M = typename Sites::M;
  const Index half = a.values.cols() / 2;
  M high = M::Zero(c.rows(), c.cols());
  c.setZero();
  sites.dot(site, {a.values.leftCols(half)}, {b.values.topRows(half)}, c);
  sites.dot(site, {a.values.rightCols(half)}, {b.values.bottomRows(half)}, high);
  c += high;
  sites.round(site, c);
}

// Elements up to diagonal `last`, zero beyond.
template <class M>
NUMGATE_HOST_DEVICE M lower_part(const M& m, Index last) {
  using Scalar = typename M::Scalar;
  return M::NullaryExpr(m.rows(), m.cols(), [&](Index i, Index j) {
    return j <= i + last ? Scalar(m(i, j)) : Scalar(0.0);
  });
}

// Pair by pair: only exp2(L_i - L_j) with i >= j is formed, so nothing overflows whatever the gate.
template <class Sites>
NUMGATE_HOST_DEVICE void diagonal_pairwise(Sites& sites, const ChunkInputs<typename Sites::M>& in,
                                           const ChunkDecays<typename Sites::M>& decays, Index n0,
                                           Index rows, Products<typename Sites::M>& out) {
  using M = typename Sites::M;
  for (Index i = n0; i < n0 + rows; ++i) {
    const Index cols = i - n0 + 1;
    M decay = (decays.L.row(i).replicate(cols, 1) - decays.L.middleRows(n0, cols)).transpose();
    sites.round(Site::cumsum, decay);
    sites.exp2(Site::diag_dot, decay);
    Operand<M> left{M(2, in.k.cols())}, right{in.k.middleRows(n0, cols).transpose()};
    left.values.row(0) = in.k.row(i);
    left.values.row(1) = in.q.row(i);
    sites.multiply(Site::diag_dot, right.values, decay);
    M pair = M::Zero(2, cols);
    sites.vector_dot(Site::diag_dot, left, right, pair);
    out.kk.block(i, n0, 1, cols - 1) = pair.row(0).head(cols - 1);
    out.qk.block(i, n0, 1, cols) = pair.row(1);
  }
}

// k k^T and q k^T with every pair's decay, by blocks of 16 x 16. The left side carries the decay
// since the start of its sub-chunk, `right` (k decays.right) that to the end of its own, and what
// lies between is a factor; factored, `right` lacks its sub-chunk's decay. Gates without a bound,
// and dots off the tensor core, go pair by pair on the diagonal.
template <class Sites>
NUMGATE_HOST_DEVICE Products<typename Sites::M> decayed_products(
    Sites& sites, const ChunkInputs<typename Sites::M>& in,
    const ChunkDecays<typename Sites::M>& decays, const typename Sites::M& right) {
  using M = typename Sites::M;
  const Index n = in.tokens();
  Products<M> out{M::Zero(n, n), M::Zero(n, n)};
  for (Index I = 0; I * kSubChunk < n; ++I) {
    const Index i0 = I * kSubChunk, rows = std::min(Index{kSubChunk}, n - i0);
    if (!decays.factored) diagonal_pairwise(sites, in, decays, i0, rows, out);
    M key = in.k.middleRows(i0, rows), query = in.q.middleRows(i0, rows);
    const M enter = decays.enter.middleRows(i0, rows);
    sites.multiply(Site::akk_dot, key, enter);
    sites.multiply(Site::aqk_dot, query, enter);
    for (Index J = 0; J < I + decays.factored; ++J) {
      const Index j0 = J * kSubChunk, cols = std::min(Index{kSubChunk}, n - j0);
      Operand<M> a{key}, qa{query}, b{right.middleRows(j0, cols).transpose()};
      if (I - J > 1) {
        const M between = decay_across(sites, decays, J + 1, I).replicate(rows, 1);
        sites.multiply(Site::akk_dot, a.values, between);
        sites.multiply(Site::aqk_dot, qa.values, between);
      }
      if (decays.factored && J < I) {
        const M within = decay_across(sites, decays, J, J + 1).transpose();
        sites.multiply(Site::akk_dot, b.values, within.replicate(1, cols));
      }
      M kk(rows, cols), qk(rows, cols);
      halves_dot(sites, I == J ? Site::diag_dot : Site::akk_dot, a, b, kk);
      halves_dot(sites, I == J ? Site::diag_dot : Site::aqk_dot, qa, b, qk);
      if (I == J) {
        kk = lower_part(kk, -1);
        qk = lower_part(qk, 0);
      }
      out.kk.block(i0, j0, rows, cols) = kk;
      out.qk.block(i0, j0, rows, cols) = qk;
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

  const auto decays = chunk_decays(sites, constants, in.g, in.bounded_gate);
  const Index blocks = decays.total.rows();
  M right = in.k;
  sites.multiply(Site::akk_dot, right, decays.right);
  auto [kk, qk] = decayed_products(sites, in, decays, right);
  out.Aqk.values = std::move(qk);
  sites.store(Site::aqk_store, out.Aqk);
  Operand<M> T{unit_lower_inverse(sites, kk)}, v{in.v}, k{in.k};
  sites.multiply(Site::inverse, T.values, in.beta.transpose().replicate(n, 1));
  const Format u_format = sites.format(Site::u_dot);
  if (u_format == sites.format(Site::w_dot) &&
      (u_format == Format::bf16 || u_format == Format::fp16))
    sites.store(Site::u_dot, T);  // both dots read the same rounded T

  // From the chunk's start to the token, and from the token to the chunk's end.
  out.Qg.values = in.q;
  sites.multiply(Site::w_dot, k.values, decays.enter);
  sites.multiply(Site::qg_store, out.Qg.values, decays.enter);
  for (Index b = 0; b < blocks; ++b) {
    const Index first = b * kSubChunk, rows = std::min(Index{kSubChunk}, n - first);
    M key = k.values.middleRows(first, rows), query = out.Qg.values.middleRows(first, rows),
      kg = right.middleRows(first, rows);
    if (b > 0) {
      const M since = decay_across(sites, decays, 0, b).replicate(rows, 1);
      sites.multiply(Site::w_dot, key, since);
      sites.multiply(Site::qg_store, query, since);
    }
    if (const Index next = b + !decays.factored; next < blocks)
      sites.multiply(Site::kg_store, kg,
                     decay_across(sites, decays, next, blocks).replicate(rows, 1));
    k.values.middleRows(first, rows) = key;
    out.Qg.values.middleRows(first, rows) = query;
    right.middleRows(first, rows) = kg;
  }
  out.KgT.values = right.transpose();
  sites.store(Site::kg_store, out.KgT);
  sites.store(Site::qg_store, out.Qg);

  out.U.values.setZero(n, V);
  out.W.values.setZero(n, K);
  sites.dot(Site::u_dot, T, v, out.U.values);
  sites.dot(Site::w_dot, T, k, out.W.values);
  sites.store(Site::u_store, out.U);
  sites.store(Site::w_store, out.W);

  M total = decays.total.row(0);
  for (Index b = 1; b < blocks; ++b) {
    total += decays.total.row(b);
    sites.round(Site::cumsum, total);
  }
  out.gamma.values = total.transpose();
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
