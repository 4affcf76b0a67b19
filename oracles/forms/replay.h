// Replay: a checkpoint state and a ring of records instead of a state written every step
// (PIPELINE 3.5).
#pragma once
#include <vector>

#include "oracles/forms/chunked.h"
#include "oracles/forms/reductions.h"

namespace numgate::forms {

template <class M>
struct ReplayRing {
  struct Record {
    Operand<M> k, u,
        G;  // [1 K], [1 V], [1 K]: khat, beta (v - r), cumulative log2 gate since the checkpoint
  };
  std::vector<Record> records;
  M G;  // running cumulative gate; empty after a flush
};

// The records folded into the checkpoint; the ring empties.
template <class Sites>
void flush(Sites& sites, ReplayRing<typename Sites::M>& ring, Operand<typename Sites::M>& S) {
  using M = typename Sites::M;
  if (ring.records.empty()) return;
  const Index L = static_cast<Index>(ring.records.size());
  M keys(S.values.rows(), L), us(L, S.values.cols());
  for (Index j = 0; j < L; ++j) {
    const auto& record = ring.records[static_cast<std::size_t>(j)];
    M decay = ring.G - record.G.values, k = record.k.values;
    sites.round(Site::replay_dot, decay);
    sites.exp2(Site::replay_dot, decay);
    sites.multiply(Site::replay_dot, k, decay);
    keys.col(j) = k.transpose();
    us.row(j) = record.u.values;
  }
  M sum = M::Zero(S.values.rows(), S.values.cols()), gamma = ring.G.transpose();
  sites.fma_dot(Site::replay_dot, keys, us, sum);
  sites.exp2(Site::replay_dot, gamma);
  sites.state(S, gamma.col(0).asDiagonal() * S.values + sum);
  ring = {};
}

// One token; S is the checkpoint. Returns o [1 V]. The ring is flushed when it holds `length`
// records.
template <class Sites>
typename Sites::M replay_step(Sites& sites, const Constants<typename Sites::Real>& constants,
                              const ChunkInputs<typename Sites::M>& token, std::size_t length,
                              ReplayRing<typename Sites::M>& ring, Operand<typename Sites::M>& S) {
  using M = typename Sites::M;
  const Index V = token.v.cols(), K = token.k.cols();
  M gl = token.g * constants.log2e;
  sites.round(Site::cumsum, gl);
  if (ring.G.size() == 0) {
    ring.G = gl;
  } else {
    ring.G += gl;
    sites.round(Site::cumsum, ring.G);
  }
  M decay = ring.G, k = token.k, q = token.q;
  sites.exp2(Site::replay_dot, decay);
  sites.multiply(Site::replay_dot, k, decay);
  sites.multiply(Site::replay_dot, q, decay);
  M r = quarter_dot(sites, Site::replay_dot, k, S), o = quarter_dot(sites, Site::replay_dot, q, S);
  const Index L = static_cast<Index>(ring.records.size());
  M keys(L, K), us(L, V);
  for (Index j = 0; j < L; ++j) {
    const auto& record = ring.records[static_cast<std::size_t>(j)];
    M between = ring.G - record.G.values, key = record.k.values;
    sites.round(Site::replay_dot, between);
    sites.exp2(Site::replay_dot, between);
    sites.multiply(Site::replay_dot, key, between);
    keys.row(j) = key;
    us.row(j) = record.u.values;
  }
  if (L > 0) {
    const M c = warp_dot(sites, Site::replay_dot, token.k.replicate(L, 1), keys).transpose();
    const M cq = warp_dot(sites, Site::replay_dot, token.q.replicate(L, 1), keys).transpose();
    sites.fma_dot(Site::replay_dot, c, us, r);
    sites.fma_dot(Site::replay_dot, cq, us, o);
  }
  M u = token.v - r;
  sites.round(Site::replay_dot, u);
  sites.multiply(Site::replay_dot, u, token.beta.replicate(1, V));
  const M qk = warp_dot(sites, Site::replay_dot, token.q, token.k);
  sites.fma_dot(Site::replay_dot, qk, u, o);

  ring.records.push_back({{token.k}, {u}, {ring.G}});
  auto& record = ring.records.back();
  sites.store(Site::ring, record.k);
  sites.store(Site::ring, record.u);
  sites.store(Site::ring, record.G);
  ring.G = record.G.values;  // read back by the next token
  if (ring.records.size() >= length) flush(sites, ring, S);
  return o;
}

}  // namespace numgate::forms
