// A case's form: its stage's forms composed as its schedule cuts them, one head at a time.
#pragma once
#include <string_view>

#include "core/case_id.h"
#include "core/errors.h"
#include "oracles/forms/decode.h"
#include "oracles/forms/replay.h"
#include "oracles/forms/scalar_stages.h"
#include "oracles/forms/segment_map.h"

namespace numgate::forms {

// Rows `first`, first + 1, ... of one head: element (row * heads + head) * width + column of the
// tensor.
template <class Real>
Matrix<Real> read_rows(const TensorMap& inputs, std::string_view name, std::int64_t first,
                       std::int64_t rows, std::int64_t heads, std::int64_t head,
                       std::int64_t width) {
  const auto found = inputs.find(std::string(name));
  if (found == inputs.end()) throw UsageError("input", std::string(name), "is missing");
  const Tensor& t = found->second;
  if (t.size() < ((first + rows - 1) * heads + head + 1) * width)
    throw UsageError("input", std::string(name), "has too few elements for the case's shape");
  Matrix<Real> m(rows, width);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t d = 0; d < width; ++d)
      m(r, d) = Real(t.at(((first + r) * heads + head) * width + d));
  return m;
}

template <class Real>
Matrix<Real> read_state0(const TensorMap& inputs, const Shape& s, std::int64_t sequence,
                         std::int64_t head) {
  if (!inputs.contains("state0")) return Matrix<Real>::Zero(s.K, s.V);
  return read_rows<Real>(inputs, "state0", (sequence * s.HV + head) * s.K, s.K, 1, 0, s.V);
}

// The prepared operands of one value head, from raw inputs (kda.prefill) or as given.
template <class Sites>
class HeadInputs {
 public:
  using Real = typename Sites::Real;

  HeadInputs(Sites& sites, const Case& c, const TensorMap& inputs, std::int64_t head)
      : sites_(sites),
        case_(c),
        inputs_(inputs),
        head_(head),
        constants_(Constants<Real>::make(sites, c.shape.K)) {
    if (!raw()) return;
    rate_ = gate_rate(sites, read_rows<Real>(inputs, "A_log", head, 1, 1, 0, 1)(0, 0));
    bias_ = read_rows<Real>(inputs, "dt_bias", head, 1, 1, 0, c.shape.K);
  }

  const Constants<Real>& constants() const { return constants_; }

  ChunkInputs<Real> tokens(std::int64_t t, std::int64_t n) {
    const Shape& s = case_.shape;
    const std::int64_t key_head = head_ / (s.HV / s.H);
    const auto key = [&](auto name) {
      return read_rows<Real>(inputs_, name, t, n, s.H, key_head, s.K);
    };
    const auto value = [&](auto name, std::int64_t width) {
      return read_rows<Real>(inputs_, name, t, n, s.HV, head_, width);
    };
    ChunkInputs<Real> in;
    in.v = value("v", s.V);
    in.bounded_gate = s.gate == Gate::bounded;
    if (raw()) {
      in.q = l2_norm(sites_, key("q"), &constants_.query_scale);
      in.k = l2_norm(sites_, key("k"));
      in.g = gate(sites_, value("g_raw", s.K), rate_, bias_, s.gate == Gate::bounded);
      in.beta = beta(sites_, value("beta_raw", 1));
    } else {
      in.q = case_.stage == "kda.summary" ? Matrix<Real>::Zero(n, s.K).eval() : key("qhat");
      in.k = key("khat");
      in.g = value("g", s.K);
      in.beta = value("beta", 1);
    }
    return in;
  }

 private:
  bool raw() const { return case_.stage == "kda.prefill"; }

  Sites& sites_;
  const Case& case_;
  const TensorMap& inputs_;
  std::int64_t head_;
  Constants<Real> constants_;
  Real rate_{};
  Matrix<Real> bias_;
};

// Calls visit(first token, operands) for each chunk of a segment.
template <class Sites, class Visit>
void for_each_chunk(Sites& sites, HeadInputs<Sites>& head, Segment s, Visit visit) {
  for (std::int64_t t = s.begin; t < s.end; t += kChunk)
    visit(t, chunk_operands(sites, head.constants(),
                            head.tokens(t, std::min<std::int64_t>(kChunk, s.end - t))));
}

// The recurrence of one head and sequence under the case's schedule. `emit(tensor, first, rows)`
// receives rows of `o` from token `first` on, and `state` and, under cp, `fold` with the sequence's
// index as `first`.
template <class Sites, class Emit>
void walk_recurrence(Sites& sites, const Case& c, const TensorMap& inputs, std::int64_t index,
                     Segment sequence, std::int64_t head_index, Emit emit) {
  using Real = typename Sites::Real;
  using M = Matrix<Real>;
  HeadInputs<Sites> head(sites, c, inputs, head_index);
  Operand<Real> S{read_state0<Real>(inputs, c.shape, index, head_index)};
  std::vector<Segment> pieces = c.schedule.kind == ScheduleKind::varlen
                                    ? std::vector<Segment>{{0, sequence.size()}}
                                    : segments(c.schedule, sequence.size());
  for (auto& p : pieces) p.begin += sequence.begin, p.end += sequence.begin;
  M o;

  if (c.schedule.kind == ScheduleKind::cp) {
    // A rank's local pass needs only the fold over the ranks before it, and its summary the same
    // chunk operands: one walk over the tokens does both.
    Operand<Real> fold = S;
    for (const Segment& rank : pieces) {
      auto map = SegmentMap<Real>::identity(c.shape.K, c.shape.V);
      if (rank.size() > 0) S = fold;
      for_each_chunk(sites, head, rank, [&](std::int64_t t, const ChunkOperands<Real>& chunk) {
        extend(sites, chunk, map);
        state_pass(sites, chunk, S, &o);
        emit("o", t, o);
      });
      publish(sites, map);
      merge(sites, map, fold);
    }
    emit("state", index, S.values);
    emit("fold", index, fold.values);
    return;
  }

  const bool stepwise =
      c.schedule.kind == ScheduleKind::decode || c.schedule.kind == ScheduleKind::replay;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    if (p > 0) sites.store(Site::handoff, S);
    if (stepwise && p > 0) {
      ReplayRing<Real> ring;
      for (std::int64_t t = pieces[p].begin; t < pieces[p].end; ++t) {
        const auto token = head.tokens(t, 1);
        o = c.schedule.kind == ScheduleKind::decode
                ? decode_step(sites, token, S)
                : replay_step(sites, head.constants(), token,
                              static_cast<std::size_t>(c.schedule.parameter), ring, S);
        emit("o", t, o);
      }
      flush(sites, ring, S);
    } else {
      for_each_chunk(sites, head, pieces[p], [&](std::int64_t t, const ChunkOperands<Real>& chunk) {
        state_pass(sites, chunk, S, &o);
        emit("o", t, o);
      });
    }
  }
  emit("state", index, S.values);
}

template <class Sites, class Emit>
void walk_summary(Sites& sites, const Case& c, const TensorMap& inputs, std::int64_t head_index,
                  Emit emit) {
  HeadInputs<Sites> head(sites, c, inputs, head_index);
  auto map = SegmentMap<typename Sites::Real>::identity(c.shape.K, c.shape.V);
  for_each_chunk(sites, head, {0, c.shape.T},
                 [&](std::int64_t, const auto& chunk) { extend(sites, chunk, map); });
  publish(sites, map);
  emit("M", 0, map.M.values);
  emit("B", 0, map.B.values);
}

template <class Sites, class Emit>
void walk_merge(Sites& sites, const Case& c, const TensorMap& inputs, std::int64_t head,
                Emit emit) {
  using Real = typename Sites::Real;
  const Shape& s = c.shape;
  Operand<Real> F{read_state0<Real>(inputs, s, 0, head)};
  for (std::int64_t r = 0; r < s.T; ++r)
    merge(sites,
          {{read_rows<Real>(inputs, "M", (r * s.HV + head) * s.K, s.K, 1, 0, s.K)},
           {read_rows<Real>(inputs, "B", (r * s.HV + head) * s.K, s.K, 1, 0, s.V)}},
          F);
  emit("state", 0, F.values);
}

// The scalar stages, 64 tokens at a time.
template <class Sites, class Emit>
void walk_scalar_stage(Sites& sites, const Case& c, const TensorMap& inputs, std::int64_t head,
                       Emit emit) {
  using Real = typename Sites::Real;
  using M = Matrix<Real>;
  const Shape& s = c.shape;
  Real rate{};
  M bias, w;
  if (c.stage == "kda.gate") {
    rate = gate_rate(sites, read_rows<Real>(inputs, "A_log", head, 1, 1, 0, 1)(0, 0));
    bias = read_rows<Real>(inputs, "dt_bias", head, 1, 1, 0, s.K);
  } else if (c.stage == "kda.conv") {
    w = read_rows<Real>(inputs, "w", 0, s.channels(), 1, 0, 4);
  } else if (c.stage == "kda.out_norm") {
    w = read_rows<Real>(inputs, "w", 0, 1, 1, 0, s.V);
  }
  const auto sequences = s.sequence_segments();
  for (std::size_t i = 0; i < sequences.size(); ++i)
    for (std::int64_t t = sequences[i].begin; t < sequences[i].end; t += kChunk) {
      const std::int64_t n = std::min<std::int64_t>(kChunk, sequences[i].end - t);
      if (c.stage == "kda.l2norm") {
        emit("y", t, l2_norm(sites, read_rows<Real>(inputs, "x", t, n, s.H, head, s.K)));
      } else if (c.stage == "kda.gate") {
        const M raw = read_rows<Real>(inputs, "g_raw", t, n, s.HV, head, s.K);
        emit("g", t, gate(sites, raw, rate, bias, s.gate == Gate::bounded));
      } else if (c.stage == "kda.beta") {
        emit("beta", t, beta(sites, read_rows<Real>(inputs, "beta_raw", t, n, 1, 0, s.HV)));
      } else if (c.stage == "kda.conv") {
        const std::int64_t C = s.channels(),
                           before = std::min<std::int64_t>(3, t - sequences[i].begin);
        M x = M::Zero(3 + n, C);
        if (before < 3 && inputs.contains("conv_state0"))
          x.topRows(3) =
              read_rows<Real>(inputs, "conv_state0", std::int64_t(i) * C, C, 1, 0, 3).transpose();
        x.bottomRows(before + n) = read_rows<Real>(inputs, "x", t - before, before + n, 1, 0, C);
        emit("y", t, short_convolution(sites, x, w));
      } else if (c.stage == "kda.out_norm") {
        emit("y", t,
             out_norm(sites, read_rows<Real>(inputs, "o", t, n, s.HV, head, s.V),
                      read_rows<Real>(inputs, "z", t, n, s.HV, head, s.V), w));
      } else {
        throw UsageError("stage", c.stage, "has no form");
      }
    }
}

// Rows a token in the case's outputs, the number of independent walks.
inline std::int64_t heads_of(const Case& c) {
  return c.stage == "kda.beta" || c.stage == "kda.conv" ? 1
         : c.stage == "kda.l2norm"                      ? c.shape.H
                                                        : c.shape.HV;
}

// One head of the case's stage under its schedule.
template <class Sites, class Emit>
void walk(Sites& sites, const Case& c, const TensorMap& inputs, std::int64_t head, Emit emit) {
  if (c.stage == "kda.prefill" || c.stage == "kda.core") {
    const auto sequences = c.shape.sequence_segments();
    for (std::size_t n = 0; n < sequences.size(); ++n)
      walk_recurrence(sites, c, inputs, static_cast<std::int64_t>(n), sequences[n], head, emit);
  } else if (c.stage == "kda.summary") {
    walk_summary(sites, c, inputs, head, emit);
  } else if (c.stage == "kda.merge") {
    walk_merge(sites, c, inputs, head, emit);
  } else {
    walk_scalar_stage(sites, c, inputs, head, emit);
  }
}

}  // namespace numgate::forms
