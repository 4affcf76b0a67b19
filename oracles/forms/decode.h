// One decode step: the recurrence as written (PIPELINE 2.13), every dot on the vector units.
#pragma once
#include "oracles/forms/chunked.h"
#include "oracles/forms/reductions.h"

namespace numgate::forms {

// One token through S [K V]; returns o [1 V].
template <class Sites>
typename Sites::M decode_step(Sites& sites, const ChunkInputs<typename Sites::M>& token,
                              Operand<typename Sites::M>& S) {
  using M = typename Sites::M;
  const Index V = token.v.cols();
  M alpha = token.g.transpose();
  sites.exp(Site::decode_dot, alpha);
  Operand<typename Sites::M> decayed{S.values};
  sites.multiply(Site::state, decayed.values, alpha.replicate(1, V));
  M u = token.v - quarter_dot(sites, Site::decode_dot, token.k, decayed);
  sites.round(Site::decode_dot, u);
  sites.multiply(Site::decode_dot, u, token.beta.replicate(1, V));
  sites.state(S, decayed.values + token.k.transpose() * u);
  return quarter_dot(sites, Site::decode_dot, token.q, S);
}

}  // namespace numgate::forms
