// One decode step: the recurrence as written (PIPELINE 2.13), every dot on the vector units.
#pragma once
#include "oracles/forms/chunked.h"
#include "oracles/forms/reductions.h"

namespace numgate::forms {

// One token through S [K V]; returns o [1 V].
template <class Sites>
Matrix<typename Sites::Real> decode_step(Sites& sites,
                                         const ChunkInputs<typename Sites::Real>& token,
                                         Operand<typename Sites::Real>& S) {
  using M = Matrix<typename Sites::Real>;
  const Eigen::Index V = token.v.cols();
  M alpha = token.g.transpose();
  sites.exp(Site::decode_dot, alpha);
  Operand<typename Sites::Real> decayed{S.values};
  sites.multiply(Site::state, decayed.values, alpha.replicate(1, V));
  M u = token.v - quarter_dot(sites, Site::decode_dot, token.k, decayed);
  sites.round(Site::decode_dot, u);
  sites.multiply(Site::decode_dot, u, token.beta.replicate(1, V));
  sites.state(S, decayed.values + token.k.transpose() * u);
  return quarter_dot(sites, Site::decode_dot, token.q, S);
}

}  // namespace numgate::forms
