// What the recurrence reads at a token: alpha = exp(g), khat, qhat, beta, from a stage's inputs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/case_id.h"
#include "core/tensor.h"
#include "oracles/certificate.h"
#include "oracles/definitions/kda_scalar_stages.h"
#include "oracles/scalars/multiprecision.h"

namespace numgate {

// One number a lane, at(0), at(1), ...; lanes beyond `count` repeat the last. A scalar that is no
// pack has one lane.
template <class Real>
struct Lanes {
  static constexpr int size = 1;
  template <class At>
  static Real gather(int, At at) {
    return Real(at(0));
  }
};
template <>
struct Lanes<DDPack> {
  static constexpr int size = kLanes;
  template <class At>
  static DDPack gather(int count, At at) {
    Pack p{};
    for (int l = 0; l < kLanes; ++l) p[l] = at(std::min(l, count - 1));
    return {p};
  }
};
// The same from elements first, first + stride, ... of a tensor.
template <class Real>
Real load(const Tensor& x, std::int64_t first, std::int64_t stride, int count) {
  return Lanes<Real>::gather(count, [&](int l) { return x.at(first + l * stride); });
}

template <class Real>
struct Operands {
  std::vector<Real> alpha, khat, qhat;  // [K]
  Real beta;
};

// The inputs of kda.prefill (raw) or of kda.core and kda.summary (prepared; no qhat in a summary).
struct OperandSource {
  const Shape& shape;
  const TensorMap& inputs;
  bool raw;

  bool has_query() const { return raw || inputs.contains("qhat"); }

  // Operands of value head `head` at tokens t, t + 1, ..., `count` of them, one a lane.
  template <class Real>
  void prepare(std::int64_t head, std::int64_t t, int count, Operands<Real>& out) const;
};

template <class Real>
void OperandSource::prepare(std::int64_t head, std::int64_t t, int count,
                            Operands<Real>& out) const {
  using std::exp;
  const std::int64_t K = shape.K, H = shape.H, HV = shape.HV, key_head = head / (HV / H);
  const auto row = [&](const char* name, std::int64_t heads, std::int64_t h, std::vector<Real>& x) {
    const Tensor& tensor = inputs.at(name);
    x.resize(static_cast<std::size_t>(K));
    for (std::int64_t d = 0; d < K; ++d)
      x[static_cast<std::size_t>(d)] =
          load<Real>(tensor, (t * heads + h) * K + d, heads * K, count);
  };
  row(raw ? "k" : "khat", H, key_head, out.khat);
  if (has_query()) row(raw ? "q" : "qhat", H, key_head, out.qhat);
  row(raw ? "g_raw" : "g", HV, head, out.alpha);
  out.beta = load<Real>(inputs.at(raw ? "beta_raw" : "beta"), t * HV + head, HV, count);
  if (raw) {
    definition::l2_norm(K, out.khat.data(), out.khat.data());
    definition::l2_norm(K, out.qhat.data(), out.qhat.data());
    const Real scale = definition::query_scale<Real>(K);
    for (Real& q : out.qhat) q *= scale;
    out.beta = definition::beta(out.beta);
    const Real rate = exp(Real(inputs.at("A_log").at(head)));
    for (std::int64_t d = 0; d < K; ++d) {
      Real& g = out.alpha[static_cast<std::size_t>(d)];
      const Real bias(inputs.at("dt_bias").at(head * K + d));
      g = shape.gate == Gate::bounded ? definition::bounded_gate(g, rate, bias)
                                      : definition::plain_gate(g, rate, bias);
    }
  }
  for (Real& a : out.alpha) a = exp(a);
}

// Operands of one head at a few tokens, in double-double, with the norms that the certificate
// needs.
struct OperandTile {
  std::int64_t K = 0;
  std::vector<DD> alpha, khat, qhat;  // [token, K]
  std::vector<DD> beta;               // [token]
  std::vector<TokenNorms> norms;      // [token]; v is left at 0

  OperandTile(std::int64_t K, std::int64_t tokens);
  // Fills tokens [at, at + count), count <= kLanes, from token t of the source.
  void fill(const OperandSource& source, std::int64_t head, std::int64_t t, std::int64_t at,
            int count);
};

}  // namespace numgate
