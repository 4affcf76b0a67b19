// The scalar stages as their kernels compute them: the definition's formula with fp32 roundings and
// a store.
#pragma once
#include "oracles/forms/reductions.h"

namespace numgate::forms {

// m in the format of a store site.
template <class Sites>
NUMGATE_HOST_DEVICE void store(Sites& sites, Site site, typename Sites::M& m) {
  Operand<typename Sites::M> kept{std::move(m)};
  sites.store(site, kept);
  m = std::move(kept.values);
}

// x / sqrt(sum x^2 + 1e-6) by rows [n K], then times `scale` where one is given (PIPELINE 2.10).
template <class Sites>
NUMGATE_HOST_DEVICE typename Sites::M l2_norm(Sites& sites, const typename Sites::M& x,
                                              const typename Sites::Real* scale = nullptr) {
  using Real = typename Sites::Real;
  using M = typename Sites::M;
  M r = warp_dot(sites, Site::norm, x, x).array() + Real(Real(1.0) / Real(1e6));
  sites.round(Site::norm, r);
  sites.rsqrt(Site::norm, r);
  M y = x;
  sites.multiply(Site::norm, y, r.replicate(1, x.cols()));
  if (scale) sites.multiply(Site::norm, y, M::Constant(y.rows(), y.cols(), *scale));
  store(sites, Site::norm, y);
  return y;
}

// exp(A_log), which a kernel computes alike for every token.
template <class Sites>
typename Sites::Real gate_rate(Sites& sites, const typename Sites::Real& A_log) {
  typename Sites::M rate = Sites::M::Constant(1, 1, A_log);
  sites.exp(Site::gate, rate);
  return rate(0, 0);
}

// Log decay [n K] from raw gates [n K] and dt_bias [1 K]: -5 sigmoid(rate (g + bias)), or the plain
// form -rate softplus(g + bias) (PIPELINE 2.11).
template <class Sites>
NUMGATE_HOST_DEVICE typename Sites::M gate(Sites& sites, const typename Sites::M& raw,
                                           const typename Sites::Real& rate,
                                           const typename Sites::M& bias, bool bounded) {
  using Real = typename Sites::Real;
  using M = typename Sites::M;
  M g = raw + bias.replicate(raw.rows(), 1);
  sites.round(Site::gate, g);
  const M rates = M::Constant(g.rows(), g.cols(), rate);
  if (bounded) {
    sites.multiply(Site::gate, g, rates);
    sites.sigmoid(Site::gate, g);
    sites.multiply(Site::gate, g, M::Constant(g.rows(), g.cols(), Real(-5.0)));
  } else {
    sites.softplus(Site::gate, g);
    sites.multiply(Site::gate, g, -rates);
  }
  store(sites, Site::gate, g);
  return g;
}

template <class Sites>
NUMGATE_HOST_DEVICE typename Sites::M beta(Sites& sites, typename Sites::M raw) {
  sites.sigmoid(Site::beta, raw);
  store(sites, Site::beta, raw);
  return raw;
}

// silu(sum_j w[:, j] x[t - 3 + j]) for rows 3 .. of x [3 + n C], w [C 4] (PIPELINE 2.9).
template <class Sites>
typename Sites::M short_convolution(Sites& sites, const typename Sites::M& x,
                                    const typename Sites::M& w) {
  using M = typename Sites::M;
  const Index n = x.rows() - 3;
  M p = M::Zero(n, x.cols());
  for (Index j = 0; j < 4; ++j) {
    p += x.middleRows(j, n).cwiseProduct(w.col(j).transpose().replicate(n, 1));
    sites.round(Site::conv, p);
  }
  M y = p;
  sites.sigmoid(Site::conv, y);
  sites.multiply(Site::conv, y, p);
  store(sites, Site::conv, y);
  return y;
}

// o rsqrt(mean o^2 + 1e-5) w sigmoid(z) by rows [n V], w [1 V] (PIPELINE 2.14).
template <class Sites>
typename Sites::M out_norm(Sites& sites, const typename Sites::M& o, const typename Sites::M& z,
                           const typename Sites::M& w) {
  using Real = typename Sites::Real;
  using M = typename Sites::M;
  // The mean is exact: the width is a power of two.
  M r = warp_dot(sites, Site::out_norm, o, o) * Real(Real(1.0) / Real(double(o.cols())));
  r.array() += Real(Real(1.0) / Real(1e5));
  sites.round(Site::out_norm, r);
  sites.rsqrt(Site::out_norm, r);
  M y = o, open = z;
  sites.multiply(Site::out_norm, y, r.replicate(1, o.cols()));
  sites.multiply(Site::out_norm, y, w.replicate(o.rows(), 1));
  sites.sigmoid(Site::out_norm, open);
  sites.multiply(Site::out_norm, y, open);
  store(sites, Site::out_norm, y);
  return y;
}

}  // namespace numgate::forms
