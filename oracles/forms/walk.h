// A case's form: its stage's forms composed as its schedule cuts them, one head at a time.
#pragma once
#include <string_view>

#include "core/case_id.h"
#include "core/errors.h"
#include "oracles/forms/decode.h"
#include "oracles/forms/matrix.h"
#include "oracles/forms/recurrence.h"
#include "oracles/forms/replay.h"
#include "oracles/forms/scalar_stages.h"
#include "oracles/forms/segment_map.h"

namespace numgate::forms {

// A whole input.
inline Elements elements(const TensorMap& inputs, std::string_view name) {
  const auto found = inputs.find(std::string(name));
  if (found == inputs.end()) throw UsageError("input", std::string(name), "is missing");
  return {found->second.bytes.data(), found->second.dtype};
}

template <class Real>
Matrix<Real> read_rows(const TensorMap& inputs, std::string_view name, std::int64_t first,
                       std::int64_t rows, std::int64_t heads, std::int64_t head,
                       std::int64_t width) {
  const Elements tensor = elements(inputs, name);
  if (inputs.find(std::string(name))->second.size() <
      ((first + rows - 1) * heads + head + 1) * width)
    throw UsageError("input", std::string(name), "has too few elements for the case's shape");
  return read_rows<Matrix<Real>>(tensor, first, rows, heads, head, width);
}

template <class Real>
Matrix<Real> read_state0(const TensorMap& inputs, const Shape& s, std::int64_t sequence,
                         std::int64_t head) {
  if (!inputs.contains("state0")) return Matrix<Real>::Zero(s.K, s.V);
  return read_rows<Real>(inputs, "state0", (sequence * s.HV + head) * s.K, s.K, 1, 0, s.V);
}

// The names of core/stage.h.
struct RecurrenceNames {
  std::string_view q, k, g, beta;
};
inline RecurrenceNames recurrence_names(const Case& c) {
  if (c.stage == "kda.prefill") return {"q", "k", "g_raw", "beta_raw"};
  return {"qhat", "khat", "g", "beta"};
}

// Raises UsageError where an input of the stage is missing or too short.
inline HeadSource head_source(const Case& c, const TensorMap& inputs, std::int64_t head) {
  const Shape& s = c.shape;
  for (const auto& spec : stage(c.stage).inputs) {
    if (spec.name == "state0") continue;
    elements(inputs, spec.name);
    std::int64_t size = 1;
    for (const auto extent : tensor_shape(spec, s)) size *= extent;
    if (inputs.find(std::string(spec.name))->second.size() < size)
      throw UsageError("input", std::string(spec.name),
                       "has too few elements for the case's shape");
  }
  const RecurrenceNames names = recurrence_names(c);
  HeadSource source;
  source.raw = c.stage == "kda.prefill";
  source.queries = c.stage != "kda.summary";
  source.bounded = s.gate == Gate::bounded;
  if (source.queries) source.q = elements(inputs, names.q);
  source.k = elements(inputs, names.k);
  source.v = elements(inputs, "v");
  source.g = elements(inputs, names.g);
  source.beta = elements(inputs, names.beta);
  if (source.raw) source.dt_bias = elements(inputs, "dt_bias");
  source.key_heads = s.H;
  source.heads = s.HV;
  source.key_head = head / (s.HV / s.H);
  source.head = head;
  source.K = s.K;
  source.V = s.V;
  return source;
}

template <class Sites>
HeadScalars<typename Sites::Real> head_scalars(Sites& sites, const Case& c, const TensorMap& inputs,
                                               std::int64_t head) {
  using Real = typename Sites::Real;
  HeadScalars<Real> scalars{Constants<Real>::make(sites, c.shape.K)};
  if (c.stage == "kda.prefill")
    scalars.rate = gate_rate(sites, read_rows<Real>(inputs, "A_log", head, 1, 1, 0, 1)(0, 0));
  return scalars;
}

// One head and sequence, its steps one after the other. `emit(tensor, first, rows)` receives rows
// of `o` from token `first` on, and `state` and, under cp, `fold` with the sequence's index as
// `first`.
template <class Sites, class Emit>
class RecurrenceWalk {
 public:
  using Real = typename Sites::Real;
  using M = typename Sites::M;

  RecurrenceWalk(Sites& sites, const Case& c, const TensorMap& inputs, std::int64_t head,
                 std::int64_t sequence, Emit emit)
      : source(head_source(c, inputs, head)),
        scalars(head_scalars(sites, c, inputs, head)),
        S{read_state0<Real>(inputs, c.shape, sequence, head)},
        fold(S),
        sites_(sites),
        schedule_(c.schedule),
        sequence_(sequence),
        emit_(emit) {}

  void enter_rank(bool has_tokens) {
    map = SegmentMap<M>::identity(source.K, source.V);
    if (has_tokens) S = fold;
  }
  void chunks(Segment segment, bool mapped) {
    for_each_chunk(segment, [&](std::int64_t t, std::int64_t n) {
      const auto chunk =
          chunk_operands(sites_, scalars.constants, chunk_inputs(sites_, source, scalars, t, n));
      if (mapped) extend(sites_, chunk, map);
      if (!source.queries) return;
      M o;
      state_pass(sites_, chunk, S, &o);
      emit_("o", t, o);
    });
  }
  void leave_rank() {
    publish(sites_, map);
    merge(sites_, map, fold);
  }
  void hand_off() { sites_.store(Site::handoff, S); }
  void tokens(Segment segment) {
    ReplayRing<M> ring;
    for (std::int64_t t = segment.begin; t < segment.end; ++t) {
      const auto token = chunk_inputs(sites_, source, scalars, t, 1);
      emit_("o", t,
            schedule_.kind == ScheduleKind::decode
                ? decode_step(sites_, token, S)
                : replay_step(sites_, scalars.constants, token,
                              static_cast<std::size_t>(schedule_.parameter), ring, S));
    }
    flush(sites_, ring, S);
  }
  void finish() {
    emit_("state", sequence_, S.values);
    if (schedule_.kind == ScheduleKind::cp) emit_("fold", sequence_, fold.values);
  }

  const HeadSource source;
  const HeadScalars<Real> scalars;
  Operand<M> S, fold;
  SegmentMap<M> map;

 private:
  Sites& sites_;
  const Schedule schedule_;
  std::int64_t sequence_;
  Emit emit_;
};

template <class Sites, class Emit>
void walk_summary(Sites& sites, const Case& c, const TensorMap& inputs, std::int64_t head,
                  Emit emit) {
  RecurrenceWalk<Sites, Emit> walk(sites, c, inputs, head, 0, emit);
  walk.enter_rank(true);
  walk.chunks({0, c.shape.T}, true);
  publish(sites, walk.map);
  emit("M", 0, walk.map.M.values);
  emit("B", 0, walk.map.B.values);
}

template <class Sites, class Emit>
void walk_merge(Sites& sites, const Case& c, const TensorMap& inputs, std::int64_t head,
                Emit emit) {
  using Real = typename Sites::Real;
  const Shape& s = c.shape;
  Operand<typename Sites::M> F{read_state0<Real>(inputs, s, 0, head)};
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
  using M = typename Sites::M;
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
    for (std::size_t n = 0; n < sequences.size(); ++n) {
      RecurrenceWalk<Sites, Emit> steps(sites, c, inputs, head, static_cast<std::int64_t>(n), emit);
      follow_schedule(c, sequences[n], steps);
      steps.finish();
    }
  } else if (c.stage == "kda.summary") {
    walk_summary(sites, c, inputs, head, emit);
  } else if (c.stage == "kda.merge") {
    walk_merge(sites, c, inputs, head, emit);
  } else {
    walk_scalar_stage(sites, c, inputs, head, emit);
  }
}

}  // namespace numgate::forms
