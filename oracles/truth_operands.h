// What the recurrence reads at a token: alpha = exp(g), khat, qhat, beta, from a stage's inputs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/case_id.h"
#include "core/tensor.h"
#include "oracles/definitions/kda_scalar_stages.h"
#include "oracles/operand_tile.h"
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
  std::int64_t first = 0;  // the token at which the tensors begin

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
  t -= first;
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
    std::vector<Real> bias;
    for (std::int64_t d = 0; d < K; ++d)
      bias.push_back(Real(inputs.at("dt_bias").at(head * K + d)));
    definition::kda_operands(definition::Alone{}, K, shape.gate == Gate::bounded,
                             exp(Real(inputs.at("A_log").at(head))), bias.data(), out.khat.data(),
                             out.qhat.data(), out.alpha.data(), out.beta);
  }
  for (Real& a : out.alpha) a = exp(a);
}

}  // namespace numgate
