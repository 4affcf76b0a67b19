// The recurrence of one head: its operands from the case's inputs, and how a schedule cuts it.
#pragma once
#include <string_view>
#include <vector>

#include "core/case_id.h"
#include "oracles/forms/rows.h"
#include "oracles/forms/scalar_stages.h"
#include "oracles/forms/segment_map.h"

namespace numgate::forms {

// Where the operands of one value head come from: raw inputs (kda.prefill), or as given.
struct HeadSource {
  Elements q, k, v, g, beta, dt_bias;
  std::int64_t key_heads = 1, heads = 1, key_head = 0, head = 0, K = 64, V = 64;
  bool raw = false, bounded = true;
  bool queries = true;  // kda.summary has none
};

// What a kernel computes alike for every token of a head.
template <class Real>
struct HeadScalars {
  Constants<Real> constants;
  Real rate{};  // exp(A_log); raw inputs only
};

// Tokens [t, t + n) after the scalar stages.
template <class Sites>
NUMGATE_HOST_DEVICE ChunkInputs<typename Sites::M> chunk_inputs(
    Sites& sites, const HeadSource& s, const HeadScalars<typename Sites::Real>& scalars,
    std::int64_t t, std::int64_t n) {
  using M = typename Sites::M;
  ChunkInputs<M> in;
  in.bounded_gate = s.bounded;
  in.v = read_rows<M>(s.v, t, n, s.heads, s.head, s.V);
  if (s.queries)
    in.q = read_rows<M>(s.q, t, n, s.key_heads, s.key_head, s.K);
  else
    in.q = M::Zero(n, s.K);
  in.k = read_rows<M>(s.k, t, n, s.key_heads, s.key_head, s.K);
  in.g = read_rows<M>(s.g, t, n, s.heads, s.head, s.K);
  in.beta = read_rows<M>(s.beta, t, n, s.heads, s.head, 1);
  if (s.raw) {
    in.q = l2_norm(sites, in.q, &scalars.constants.query_scale);
    in.k = l2_norm(sites, in.k);
    const M bias = read_rows<M>(s.dt_bias, s.head, 1, 1, 0, s.K);
    in.g = gate(sites, in.g, scalars.rate, bias, s.bounded);
    in.beta = beta(sites, in.beta);
  }
  return in;
}

// The recurrence of one packed sequence under the case's schedule, as steps over a carried state
// S, the fold over the ranks so far and the map of a rank's segment:
// - enter_rank(has_tokens): the map is the identity, S (where the rank has tokens) the fold.
// - chunks(segment, mapped): S, and where `mapped` the map, through the segment's chunks.
// - leave_rank(): the map, as published, joins the fold.
// - hand_off(): S is passed on from one piece to the next.
// - tokens(segment): S token by token, as the schedule's decoder does.
template <class Steps>
void follow_schedule(const Case& c, Segment sequence, Steps& steps) {
  std::vector<Segment> pieces = c.schedule.kind == ScheduleKind::varlen
                                    ? std::vector<Segment>{{0, sequence.size()}}
                                    : segments(c.schedule, sequence.size());
  for (auto& p : pieces) p.begin += sequence.begin, p.end += sequence.begin;
  if (c.schedule.kind == ScheduleKind::cp) {
    // A rank's local pass needs only the fold over the ranks before it, and its summary the same
    // chunk operands: one walk over the tokens does both.
    for (const Segment& rank : pieces) {
      steps.enter_rank(rank.size() > 0);
      steps.chunks(rank, true);
      steps.leave_rank();
    }
    return;
  }
  const bool stepwise =
      c.schedule.kind == ScheduleKind::decode || c.schedule.kind == ScheduleKind::replay;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    if (p > 0) steps.hand_off();
    if (stepwise && p > 0)
      steps.tokens(pieces[p]);
    else
      steps.chunks(pieces[p], false);
  }
}

// Calls visit(first token, tokens) for each chunk of a segment.
template <class Visit>
void for_each_chunk(Segment s, Visit visit) {
  for (std::int64_t t = s.begin; t < s.end; t += kChunk)
    visit(t, std::min<std::int64_t>(kChunk, s.end - t));
}

}  // namespace numgate::forms
