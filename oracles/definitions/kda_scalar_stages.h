// Definitions of the stages around the KDA recurrence: norm, gate, beta, short convolution, gated
// RMS norm.
//
// Each is the formula, read with any scalar of oracles/scalars. Where a scalar is a pack, its lanes
// are independent rows or channels. The formulas: PIPELINE 2.9 to 2.14 (Kimi Delta Attention);
// 1e-6 is 1 / 1000000, rounded once, or enclosed. Where a team (team.h) shares a row, pointers are
// to a lane's own elements.
#pragma once
#include <cstdint>

#include "oracles/definitions/team.h"
#include "oracles/scalars/real.h"

namespace numgate::definition {

// kda.l2norm: y = x / sqrt(sum_d x_d^2 + 1e-6), one row of n.
template <class Team, class Real>
NUMGATE_HOST_DEVICE void l2_norm(const Team& team, std::int64_t n, const Real* x, Real* y) {
  using std::sqrt;
  const std::int64_t count = team.count(n);
  Accumulator<Real> squares;
  for (std::int64_t j = 0; j < count; ++j) add_product(squares, x[j], x[j]);
  const Real norm = sqrt(sum(team, squares) + Real(1.0) / Real(1e6));
  for (std::int64_t j = 0; j < count; ++j) y[j] = x[j] / norm;
}
template <class Real>
void l2_norm(std::int64_t n, const Real* x, Real* y) {
  l2_norm(Alone{}, n, x, y);
}

// K^-1/2, the factor of qhat.
template <class Real>
NUMGATE_HOST_DEVICE Real query_scale(std::int64_t K) {
  using std::sqrt;
  return sqrt(Real(1.0) / Real(static_cast<double>(K)));
}

// kda.gate: the log decay of one channel. `rate` is exp(A_log) of its head.
template <class Real>
NUMGATE_HOST_DEVICE Real bounded_gate(const Real& g_raw, const Real& rate, const Real& dt_bias) {
  return -Real(5.0) * sigmoid(rate * (g_raw + dt_bias));
}
template <class Real>
NUMGATE_HOST_DEVICE Real plain_gate(const Real& g_raw, const Real& rate, const Real& dt_bias) {
  return -rate * softplus(g_raw + dt_bias);
}

// kda.beta.
template <class Real>
NUMGATE_HOST_DEVICE Real beta(const Real& beta_raw) {
  return sigmoid(beta_raw);
}

// The operands of kda.prefill's recurrence at one token, in place: khat from k, qhat from q, g from
// g_raw, beta from beta_raw. `rate` is exp(A_log) of the head, `bias` its dt_bias.
template <class Team, class Real>
NUMGATE_HOST_DEVICE void kda_operands(const Team& team, std::int64_t K, bool bounded,
                                      const Real& rate, const Real* bias, Real* k, Real* q, Real* g,
                                      Real& beta_raw) {
  l2_norm(team, K, k, k);
  l2_norm(team, K, q, q);
  const Real scale = query_scale<Real>(K);
  const std::int64_t count = team.count(K);
  for (std::int64_t j = 0; j < count; ++j) {
    q[j] *= scale;
    g[j] = bounded ? bounded_gate(g[j], rate, bias[j]) : plain_gate(g[j], rate, bias[j]);
  }
  beta_raw = beta(beta_raw);
}

inline constexpr std::int64_t kConvWidth = 4;

// kda.conv: SiLU(sum_j w[j] x[t - 3 + j]), one channel of one token; window[j] = x[t - 3 + j].
// Before a sequence lies its initial state, x[-3], x[-2], x[-1], or zero. The state returned is x[T
// - 3], x[T - 2], x[T - 1], raw: where T < 3 it still holds values of the initial state.
template <class Real>
Real short_conv(const Real* w, const Real* window) {
  Accumulator<Real> p;
  for (std::int64_t j = 0; j < kConvWidth; ++j) add_product(p, w[j], window[j]);
  return p.value() * sigmoid(p.value());
}

// kda.out_norm: y = o / sqrt(mean_v o_v^2 + 1e-5) * w * sigmoid(z), one row of n.
template <class Real>
void gated_rms_norm(std::int64_t n, const Real* o, const Real* z, const Real* w, Real* y) {
  using std::sqrt;
  Accumulator<Real> squares;
  for (std::int64_t v = 0; v < n; ++v) add_product(squares, o[v], o[v]);
  const Real norm = sqrt(squares.value() / Real(static_cast<double>(n)) + Real(1.0) / Real(1e5));
  for (std::int64_t v = 0; v < n; ++v) y[v] = o[v] / norm * w[v] * sigmoid(z[v]);
}

}  // namespace numgate::definition
