// Properties of the KDA kernels that need no oracle (DESIGN 5). Each takes any case, makes of it
// the one that its claim is about, and says what violates the claim.
#include <cmath>

#include "oracles/truth.h"
#include "partitioning/device_buffer.h"
#include "partitioning/shards.h"
#include "property_tests/tests/kda_properties.h"

namespace numgate {
namespace {

using Index = std::int64_t;

using Agree = bool (*)(double, double);
bool same_value(double a, double b) { return a == b; }

// The first element of `a` that does not agree with that of `b`.
Violation difference(const std::string& what, const Tensor& a, const Tensor& b,
                     Agree agree = nullptr) {
  if (a.shape != b.shape || a.dtype != b.dtype) return what + " differs in shape or type";
  if (!agree && a.bytes == b.bytes) return {};
  const std::size_t n = size_of(a.dtype);
  for (Index i = 0; i < a.size(); ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * n;
    if (agree ? agree(a.at(i), b.at(i))
              : std::memcmp(a.bytes.data() + at, b.bytes.data() + at, n) == 0)
      continue;
    char text[96];
    std::snprintf(text, sizeof text, ", element %lld: %a and %a", static_cast<long long>(i),
                  a.at(i), b.at(i));
    return what + text;
  }
  return {};
}
Violation difference(const TensorMap& a, const TensorMap& b, Agree agree = nullptr) {
  for (const auto& [name, values] : a)
    if (const auto d = difference(name, values, b.at(name), agree); !d.empty()) return d;
  return {};
}

void clear(Tensor& t) { std::fill(t.bytes.begin(), t.bytes.end(), std::byte{0}); }

Case prepared(Case c) {
  c.stage = "kda.core";
  return c;
}
Case exact(Case c) {
  c = prepared(c);
  c.family = "exact_integers";
  return c;
}

// The inputs with those of another seed for tokens [begin, end).
TensorMap other_tokens(const Case& c, const TensorMap& inputs, Segment tokens) {
  Case other = c;
  ++other.seed;
  TensorMap out = inputs;
  for (const auto& spec : stage(c.stage).inputs)
    if (spec.shape.starts_with("T"))
      place(out.at(std::string(spec.name)), generate(other, spec.name, tokens), 0, tokens.begin);
  return out;
}

// ---- Claims.

// With g = 0 and beta = 0 the state leaves as it came. Where a plan narrows what is carried, states
// that it holds.
Violation zero_beta(const Case& any) {
  Case c = prepared(any);
  c.shape.state0 = State0::random;
  TensorMap in = generate(c);
  clear(in.at("g"));
  clear(in.at("beta"));
  for (const Site s : {Site::state, Site::handoff, Site::merge_dot})
    if (c.plan.ran[s] != Format::ieee)
      for (Index i = 0; i < in.at("state0").size(); ++i)
        in.at("state0").as<std::uint32_t>()[i] &= 0xffff0000u;
  for (const auto& [name, values] : run(c, in))
    if (name != "o")
      if (const auto d = difference(name, values, in.at("state0")); !d.empty()) return d;
  return {};
}

// Twice the values and the state give twice the output, to the bit down to where underflow begins
// to count.
Violation doubled(const Case& c) {
  TensorMap in = generate(c), once = run(c, in);
  for (const char* name : {"v", "state0"}) in.at(name) = combine(in.at(name), 2);
  for (auto& [name, values] : once) values = combine(values, 2);
  return difference(once, run(c, in),
                    [](double a, double b) { return a == b || std::fabs(a - b) < 0x1p-120; });
}

// o(v1 + v2) = o(v1) + o(v2), and the state alike, where every intermediate value is a small
// integer.
Violation additive(const Case& any) {
  const Case c = exact(any);
  Case other = c;
  ++other.seed;
  TensorMap in = generate(c), in2 = in, sum = in;
  for (const char* name : {"v", "state0"}) {
    in2.at(name) = generate(other, name, {0, c.shape.T});
    sum.at(name) = combine(in.at(name), 1, &in2.at(name));
  }
  TensorMap o = run(c, in);
  const TensorMap o2 = run(c, in2);
  for (auto& [name, values] : o) values = combine(values, 1, &o2.at(name));
  return difference(o, run(c, sum), same_value);
}

// Tokens from t0 on change no bit of the output before t0.
Violation causal(const Case& c) {
  const Index t0 = static_cast<Index>(c.seed) % c.shape.T;
  const TensorMap in = generate(c);
  const auto past = [&](const TensorMap& inputs) {
    return slice(run(c, inputs).at("o"), 0, 0, t0);
  };
  return difference("o before token " + std::to_string(t0), past(in),
                    past(other_tokens(c, in, {t0, c.shape.T})));
}

// The axis of heads in an input or output of the recurrence.
std::size_t head_axis(std::string_view spec_shape, const Tensor& t) {
  return spec_shape.starts_with("T") || t.shape.size() == 4 ? 1 : 0;
}
template <class Map>
TensorMap map_heads(const Case& c, const TensorMap& tensors, Map map) {
  TensorMap out;
  for (const auto& [name, t] : tensors) {
    std::string_view shape = "N HV K V";
    for (const auto* specs : {&stage(c.stage).inputs, &stage(c.stage).outputs})
      for (const auto& spec : *specs)
        if (spec.name == name) shape = spec.shape;
    out.emplace(name, map(t, head_axis(shape, t)));
  }
  return out;
}
Tensor reversed(const Tensor& t, std::size_t axis) {
  Tensor out(t.dtype, t.shape);
  for (Index h = 0; h < t.shape[axis]; ++h)
    place(out, slice(t, axis, h, h + 1), axis, t.shape[axis] - 1 - h);
  return out;
}

// Heads in another order give the same heads of the output in that order.
Violation permuted_heads(const Case& c) {
  const TensorMap in = generate(c);
  return difference(map_heads(c, run(c, in), reversed), run(c, map_heads(c, in, reversed)));
}

// A key head and its value heads give the same bits alone as among others.
Violation batch_neighbours(const Case& c) {
  const Index h = static_cast<Index>(c.seed) % c.shape.H;
  const auto own = [&](const Tensor& t, std::size_t axis) {
    const Index n = t.shape[axis] / c.shape.H;
    return slice(t, axis, h * n, (h + 1) * n);
  };
  Case alone = c;
  alone.shape.H = 1, alone.shape.HV = c.shape.HV / c.shape.H;
  if (c.schedule.kind == ScheduleKind::tp) alone.schedule.parameter = 1;
  const TensorMap in = generate(c);
  return difference(map_heads(c, run(c, in), own), run(alone, map_heads(c, in, own)));
}

// Tokens of zero key, zero beta and no decay at the end change neither what is before them nor the
// state. Under cp, decode and replay they would move the cuts; where pieces are many and the
// handoff narrow, add one.
Violation padded(const Case& any) {
  Case c = prepared(any);
  const auto kind = c.schedule.kind;
  if (kind == ScheduleKind::cp || kind == ScheduleKind::decode || kind == ScheduleKind::replay ||
      (kind == ScheduleKind::chunked && c.plan.ran[Site::handoff] != Format::ieee))
    c.schedule = {};
  const Index T = c.shape.T, padding = 1 + static_cast<Index>(c.seed) % 80;
  const TensorMap in = generate(c);
  Case longer = c;
  longer.shape.T += padding;
  TensorMap padded = generate(longer);
  for (const auto& spec : stage(c.stage).inputs) {
    const std::string name(spec.name);
    Tensor& t = padded.at(name);
    if (name == "g" || name == "beta" || name == "khat") clear(t);
    if (spec.shape.starts_with("T")) place(t, in.at(name), 0, 0);
  }
  padded.at("state0") = in.at("state0");
  TensorMap out = run(longer, padded);
  out.at("o") = slice(out.at("o"), 0, 0, T);
  return difference(run(c, in), out);
}

// Of packed sequences each keeps its bits when all others change.
Violation varlen_neighbours(const Case& any) {
  Case c = any;
  if (c.shape.T == 1) return {};
  c.schedule = {ScheduleKind::varlen, 0};
  if (c.shape.cuts.empty()) c.shape.cuts = {1 + static_cast<Index>(c.seed / 8) % (c.shape.T - 1)};
  const auto sequences = c.shape.sequence_segments();
  const std::size_t n = c.seed % sequences.size();
  const TensorMap in = generate(c);
  TensorMap changed = other_tokens(c, in, {0, c.shape.T});
  const auto own = [&](const TensorMap& tensors, const std::string& name) {
    const auto at = static_cast<Index>(n);
    return name.starts_with("state")
               ? slice(tensors.at(name), 0, at, at + 1)
               : slice(tensors.at(name), 0, sequences[n].begin, sequences[n].end);
  };
  changed.at("state0") = reversed(in.at("state0"), 0);
  for (const auto& spec : stage(c.stage).inputs) {
    const std::string name(spec.name);
    if (spec.shape.starts_with("T")) place(changed.at(name), own(in, name), 0, sequences[n].begin);
  }
  place(changed.at("state0"), own(in, "state0"), 0, static_cast<Index>(n));
  const TensorMap a = run(c, in), b = run(c, changed);
  for (const char* name : {"o", "state"})
    if (const auto d = difference(name, own(a, name), own(b, name)); !d.empty()) return d;
  return {};
}

// What memory held before and the order of threads change no bit.
Violation dirty_workspace(const Case& c) {
  const TensorMap in = generate(c);
  return difference(run(c, in), run(c, in, {kOtherPoison, c.seed + 99}));
}

// Every plan computes small integers exactly.
Violation exact_integers(const Case& any) {
  const Case c = exact(any);
  const TensorMap in = generate(c);
  const Truth truth = compute_truth(c, in);
  for (const auto& [name, values] : run(c, in)) {
    const auto& t = truth.outputs.at(name == "fold" ? "state" : name);
    for (Index i = 0; i < values.size(); ++i)
      if (values.at(i) != t.hi[static_cast<std::size_t>(i)])
        return name + " is not the truth at element " + std::to_string(i);
  }
  return {};
}

// A fold of summaries may stop anywhere and go on from the state that it reached.
Violation fold_in_two_steps(const Case& any) {
  Case c = any;
  c.stage = "kda.merge";
  c.schedule = {};
  if (!family(c.family).applies_to(c.stage)) c.family = "gaussian";
  c.shape = {2 + static_cast<Index>(c.seed) % 4,
             1,
             1,
             any.shape.K,
             any.shape.V,
             any.shape.in,
             any.shape.gate,
             State0::random,
             {}};
  TensorMap in = generate(c), whole = run(c, in);
  const Index cut = 1 + static_cast<Index>(c.seed / 4) % (c.shape.T - 1);
  for (const Segment part : {Segment{0, cut}, Segment{cut, c.shape.T}}) {
    Case step = c;
    step.shape.T = part.size();
    TensorMap share = in;
    for (const char* name : {"M", "B"})
      share.at(name) = slice(in.at(name), 0, part.begin, part.end);
    in.at("state0") = run(step, share).at("state");
  }
  return difference("state", whole.at("state"), in.at("state0"));
}

// M [K n] times X [n m], plus B where there is one.
Tensor affine(const Tensor& M, const Tensor& X, const Tensor* B) {
  const Index K = M.shape[1], n = X.shape[2];
  Tensor out(Dtype::f32, X.shape);
  for (Index i = 0; i < K; ++i)
    for (Index j = 0; j < n; ++j) {
      double sum = B ? B->at(i * n + j) : 0;
      for (Index k = 0; k < K; ++k) sum += M.at(i * K + k) * X.at(k * n + j);
      out.as<float>()[i * n + j] = static_cast<float>(sum);
    }
  return out;
}

// The map of a segment is the composition of the maps of its parts.
Violation composed_maps(const Case& any) {
  Case c = exact(any);
  c.stage = "kda.summary";
  c.schedule = {};
  c.shape.H = c.shape.HV = 1;
  c.shape.cuts.clear();
  c.shape.T = std::max<Index>(c.shape.T, 2);
  const TensorMap in = generate(c);
  const Index cut = 1 + static_cast<Index>(c.seed) % (c.shape.T - 1);
  const auto map = [&](Segment s) {
    Case part = c;
    part.shape.T = s.size();
    TensorMap share;
    for (const auto& [name, t] : in) share.emplace(name, slice(t, 0, s.begin, s.end));
    return run(part, share);
  };
  const TensorMap whole = map({0, c.shape.T}), a = map({0, cut}), b = map({cut, c.shape.T});
  const TensorMap composed{{"M", affine(b.at("M"), a.at("M"), nullptr)},
                           {"B", affine(b.at("M"), a.at("B"), &b.at("B"))}};
  return difference(composed, whole, same_value);
}

// Its map applied to a state is the segment run from that state.
Violation map_is_the_segment(const Case& any) {
  Case c = exact(any);
  c.schedule = {};
  c.shape.H = c.shape.HV = 1;
  c.shape.cuts.clear();
  c.shape.state0 = State0::random;
  Case summary = c;
  summary.stage = "kda.summary";
  const TensorMap in = generate(c), map = run(summary, in);
  const Tensor state = affine(map.at("M"), in.at("state0"), &map.at("B"));
  return difference("M S + B", state, run(c, in).at("state"), same_value);
}

// ----

struct Claim {
  const char* name;
  Violation (*violation)(const Case&);
  int cases = 50;
};

class Metamorphic : public testing::TestWithParam<Claim> {};

// In multiply-adds, about: of the tokens, and of each rank's fold of those before it.
bool is_small(const Case& c) {
  const Shape& s = c.shape;
  const Index ranks = c.schedule.kind == ScheduleKind::cp ? c.schedule.parameter : 0;
  return s.T <= 200 && s.HV * s.K * (s.T * s.V + ranks * ranks * s.K * s.V / 4) <= 5'000'000;
}

TEST_P(Metamorphic, HoldsForDrawnCases) {
  check_cases(GetParam().name, GetParam().cases, is_small, GetParam().violation);
}

TEST_P(Metamorphic, HoldsForSavedCases) {
  for (const Case& c : saved_counterexamples(kCounterexamples))
    EXPECT_EQ(GetParam().violation(c), "") << c.id();
}

INSTANTIATE_TEST_SUITE_P(Kda, Metamorphic,
                         testing::Values(Claim{"zero_beta", zero_beta}, Claim{"doubled", doubled},
                                         Claim{"additive", additive, 40}, Claim{"causal", causal},
                                         Claim{"permuted_heads", permuted_heads},
                                         Claim{"batch_neighbours", batch_neighbours},
                                         Claim{"padded", padded},
                                         Claim{"varlen_neighbours", varlen_neighbours},
                                         Claim{"dirty_workspace", dirty_workspace},
                                         Claim{"exact_integers", exact_integers, 60},
                                         Claim{"fold_in_two_steps", fold_in_two_steps, 40},
                                         Claim{"composed_maps", composed_maps, 40},
                                         Claim{"map_is_the_segment", map_is_the_segment, 40}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace numgate
