// Planted faults: outputs as a faulty kernel or schedule would leave them must fail, by the rule
// that names the fault; the healthy run of the same case must not (FAULTS, section KDA).
#include <algorithm>
#include <cmath>

#include "cli/group.h"
#include "partitioning/shards.h"
#include "property_tests/tests/kda_properties.h"

namespace numgate {
namespace {

using Index = std::int64_t;

bool fails_by(const CellResult& cell, std::string_view rule) {
  return std::any_of(cell.reasons.begin(), cell.reasons.end(),
                     [&](const Reason& r) { return r.rule == rule; });
}
std::string reasons(const CellResult& cell) {
  std::string text;
  for (const Reason& r : cell.reasons) text += "\n  " + r.rule + ": " + r.text;
  return text;
}
CellResult judged(Group& group, const Case& c, const Observation& seen) {
  return judge(group.evidence(c, seen), default_policy());
}

// ---- What faults are made of.

// Tokens of a piece run on their own from a state, or from the case's.
TensorMap part(Case c, TensorMap in, Segment tokens, const Tensor* from = nullptr) {
  for (const auto& spec : stage(c.stage).inputs)
    if (Tensor& t = in.at(std::string(spec.name)); spec.shape.starts_with("T"))
      t = slice(t, 0, tokens.begin, tokens.end);
  if (from) in.at(in.contains("conv_state0") ? "conv_state0" : "state0") = *from;
  if (from) c.shape.state0 = State0::random;
  c.schedule = {};
  c.shape.T = tokens.size();
  c.shape.cuts.clear();
  return run(c, in);
}

// Rows of b after those of a, the final state of b.
Observation joined(const TensorMap& a, TensorMap b) {
  for (const char* name : {"o", "y"}) {
    if (!b.contains(name)) continue;
    const Tensor &x = a.at(name), &y = b.at(name);
    auto shape = x.shape;
    shape[0] += y.shape[0];
    Tensor whole(x.dtype, shape);
    place(whole, x, 0, 0);
    place(whole, y, 0, x.shape[0]);
    b.at(name) = whole;
  }
  return {b, {}};
}

Tensor zeros(const Tensor& like) { return Tensor(like.dtype, like.shape); }

void copy_head(Tensor& t, std::size_t axis, Index from, Index to) {
  place(t, slice(t, axis, from, from + 1), axis, to);
}
Tensor reversed(const Tensor& t) {
  Tensor out = zeros(t);
  for (Index i = 0; i < t.shape[0]; ++i) place(out, slice(t, 0, i, i + 1), 0, t.shape[0] - 1 - i);
  return out;
}

// f(element's index, value) over an f32 tensor.
template <class F>
Tensor map(Tensor t, F f) {
  for (Index i = 0; i < t.size(); ++i)
    t.as<float>()[i] = static_cast<float>(f(i, t.as<float>()[i]));
  return t;
}

// The healthy run with one output changed by f(group, tensor).
template <class F>
auto output(const char* name, F f) {
  return [=](const Case& c, Group& g) {
    Observation seen = g.run(c);
    seen.outputs.at(name) = f(c, g, seen.outputs.at(name));
    return seen;
  };
}
// A run on inputs changed by f(inputs).
template <class F>
auto inputs(F f) {
  return [=](const Case& c, Group& g) {
    TensorMap in = g.inputs();
    f(in);
    return run_case(c, in, cpu());
  };
}
// A cut after `token` where the second piece starts from f(case, inputs, state of the first).
template <class F>
auto cut(Index token, F f) {
  return [=](const Case& c, Group& g) {
    const TensorMap a = part(c, g.inputs(), {0, token});
    const Tensor& state = a.contains("state") ? a.at("state") : a.at("conv_state");
    const Tensor from = f(c, g.inputs(), state);
    return joined(a, part(c, g.inputs(), {token, c.shape.T}, &from));
  };
}

struct Fault {
  std::string_view name, id;
  std::vector<std::string_view> rules;                              // by each of which it must fail
  std::function<Observation(const Case&, Group&)> plant = nullptr;  // null: the case's own run
  std::string_view says = "";                                       // in the text of a reason
};

void gates_of_head_0(TensorMap& in) {
  copy_head(in.at("g_raw"), 1, 0, 1);
  copy_head(in.at("dt_bias"), 0, 0, 1);
  copy_head(in.at("A_log"), 0, 0, 1);
}

// As packed sequences would leave the rows of `name` without their boundaries.
auto without_boundaries(const char* name) {
  return output(name, [=](const Case& c, Group& g, const Tensor&) {
    TensorMap in = g.inputs();
    for (const char* state : {"state0", "conv_state0"})
      if (in.contains(state)) {
        Tensor& t = in.at(state);
        t = slice(t, 0, 0, 1);
        t.shape.erase(t.shape.begin());
      }
    return part(c, in, {0, c.shape.T}).at(name);
  });
}

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all{
      // Cuts and states.
      {"every head reads head 0's gates in the summary",
       "kda.prefill/cp2/reference/mixed_decay/T=256,H=2/seed=1",
       {"contract", "equivalence"},
       cut(128,
           [](const Case& c, TensorMap in, const Tensor&) {
             gates_of_head_0(in);
             return part(c, in, {0, 128}).at("state");
           })},
      {"a cut ignores the incoming state",
       "kda.prefill/chunked@128/production/slow_decay/T=256/seed=1",
       {"contract", "equivalence"},
       cut(128, [](const Case&, const TensorMap&, const Tensor& s) { return zeros(s); })},
      {"a cut hands on the state of the beginning",
       "kda.prefill/resume@100/production/slow_decay/T=256,state0=random/seed=1",
       {"contract", "equivalence"},
       cut(100, [](const Case&, const TensorMap& in, const Tensor&) { return in.at("state0"); })},
      {"gates cumulated again on resume",
       "kda.core/resume@100/production/gaussian/T=256/seed=1",
       {"contract", "equivalence"},
       [](const Case& c, Group& g) {
         const TensorMap a = part(c, g.inputs(), {0, 100});
         TensorMap in = g.inputs();
         const Index K = c.shape.K;
         for (Index i = 101 * K; i < 128 * K; ++i)  // the rest of the cut chunk
           in.at("g").as<float>()[i] += in.at("g").as<float>()[i - K];
         return joined(a, part(c, in, {100, 256}, &a.at("state")));
       }},
      {"state left by another request",
       "kda.prefill/sequential/production/gaussian/T=64/seed=1",
       {"contract"},
       [](const Case& c, Group& g) {
         Case other = c;
         other.shape.state0 = State0::random;
         TensorMap in = g.inputs();
         in.at("state0") = generate(other).at("state0");
         return run_case(other, in, cpu());
       }},
      {"state0 of another sequence",
       "kda.prefill/varlen/production/gaussian/T=200,state0=random,cuts=70+135/seed=1",
       {"contract", "equivalence"},
       inputs([](TensorMap& in) { in.at("state0") = reversed(in.at("state0")); })},
      {"the state runs on into the next sequence",
       "kda.prefill/varlen/production/gaussian/T=200,cuts=70+135/seed=1",
       {"contract", "equivalence"},
       without_boundaries("o")},
      {"state stored transposed",
       "kda.prefill/sequential/production/gaussian/T=100/seed=1",
       {"contract", "accuracy"},
       output("state",
              [](const Case& c, Group&, const Tensor& t) {
                return map(t, [&](Index i, float) {
                  const Index n = c.shape.K;
                  return t.at(i % n * n + i / n);
                });
              })},
      {"tail chunk missing in the state",
       "kda.prefill/sequential/production/gaussian/T=150/seed=1",
       {"contract"},
       output("state",
              [](const Case& c, Group& g, const Tensor&) {
                return part(c, g.inputs(), {0, c.shape.T - c.shape.T % 64}).at("state");
              })},
      {"last records of the ring not flushed",
       "kda.prefill/replay@16/production/gaussian/T=100/seed=1",
       {"contract"},
       output("state",
              [](const Case& c, Group& g, const Tensor&) {
                return part(c, g.inputs(), {0, 98}).at("state");
              })},
      {"fold in the ranks' reverse order",
       "kda.merge/sequential/production/gaussian/T=4,state0=random/seed=1",
       {"contract"},
       inputs([](TensorMap& in) {
         for (const char* name : {"M", "B"}) in.at(name) = reversed(in.at(name));
       })},
      // The short convolution.
      {"a shard without its halo",
       "kda.conv/cp2/reference/gaussian/T=64/seed=1",
       {"contract", "equivalence"},
       cut(32, [](const Case&, const TensorMap&, const Tensor& s) { return zeros(s); })},
      {"the window slides over a boundary",
       "kda.conv/varlen/reference/gaussian/T=64,cuts=20+41/seed=1",
       {"contract", "equivalence"},
       without_boundaries("y")},
      {"a window shorter than its width drops what is old",
       "kda.conv/sequential/reference/gaussian/T=2,state0=random/seed=1",
       {"health"},
       output("conv_state",
              [](const Case& c, Group&, Tensor t) {
                for (Index channel = 0; channel < c.shape.channels(); ++channel)
                  t.as<std::uint16_t>()[channel * 3] = 0;
                return t;
              })},
      // Outputs.
      {"one element of one token off by twelve shadows",
       "kda.prefill/sequential/production/gaussian/T=256/seed=1",
       {"contract"},
       output("o",
              [](const Case& c, Group& g, const Tensor& t) {
                const auto& rows = g.shadow(c, c.plan.declared).at("o").row_max;
                return map(t, [&](Index i, float x) {
                  const std::size_t row = 100;
                  return i == 100 * 64 + 17 ? x + 12 * std::max(rows[0][row], rows[1][row]) : x;
                });
              }),
       "token score"},
      {"one token destroyed",
       "kda.prefill/sequential/production/gaussian/T=256,H=2/seed=1",
       {"contract"},
       output("o",
              [](const Case&, Group&, Tensor t) {
                place(t, slice(t, 0, 76, 77), 0, 77);
                return t;
              }),
       "token score"},
      {"one head destroyed",
       "kda.prefill/sequential/production/gaussian/T=100,H=4/seed=1",
       {"contract", "accuracy"},
       output("o",
              [](const Case&, Group&, Tensor t) {
                copy_head(t, 1, 0, 2);
                return t;
              })},
      {"the last rows never written",
       "kda.prefill/sequential/production/gaussian/T=100/seed=1",
       {"health"},
       output("o",
              [](const Case&, Group&, Tensor t) {
                std::fill(t.bytes.end() - 4 * 64 * 4, t.bytes.end(), std::byte{0xff});
                return t;
              })},
      {"value heads read key heads as if interleaved",
       "kda.prefill/sequential/production/gaussian/T=100,H=2,HV=4/seed=1",
       {"contract", "accuracy"},
       [](const Case& c, Group& g) {
         Case expanded = c;  // every value head with a key head of its own: 0 1 0 1, not 0 0 1 1
         expanded.shape.H = 4;
         TensorMap in = g.inputs();
         for (const char* name : {"q", "k"}) {
           Tensor t(c.shape.in, {c.shape.T, 4, c.shape.K});
           place(t, in.at(name), 1, 0);
           place(t, in.at(name), 1, 2);
           in.at(name) = t;
         }
         return run_case(expanded, in, cpu());
       }},
      {"a state never handed back",
       "kda.prefill/sequential/production/gaussian/T=100/seed=1",
       {"health"},
       [](const Case& c, Group& g) {
         Observation seen = g.run(c);
         seen.outputs.erase("state");
         return seen;
       }},
      // Arithmetic.
      {"log2 and natural decay mixed up",
       "kda.core/sequential/production/gaussian/T=100/seed=1",
       {"contract"},
       inputs([](TensorMap& in) {
         in.at("g") = map(in.at("g"), [](Index, float g) { return g * std::log(2.0f); });
       })},
      {"query not scaled",
       "kda.core/sequential/production/gaussian/T=100/seed=1",
       {"contract", "accuracy"},
       inputs([](TensorMap& in) {
         in.at("qhat") = map(in.at("qhat"), [](Index, float q) { return q * 8; });
       })},
      {"softplus' tail as log(1 + exp(x))",
       "kda.gate/sequential/reference/saturated/T=64,H=2,gate=plain/seed=1",
       {"contract"},
       [](const Case& c, Group& g) {
         const TensorMap& in = g.inputs();
         Observation seen = g.run(c);
         seen.outputs.at("g") = map(seen.outputs.at("g"), [&](Index i, float value) {
           const Index head = i / c.shape.K % c.shape.HV;
           const auto x = static_cast<float>(in.at("g_raw").at(i));  // the bias is zero
           return x > 0
                      ? value
                      : -std::exp(in.at("A_log").as<float>()[head]) * std::log(1.0f + std::exp(x));
         });
         return seen;
       }},
      {"epsilon beside the norm instead of inside it",
       "kda.l2norm/sequential/reference/tiny/T=64/seed=1",
       {"contract"},
       output("y",
              [](const Case& c, Group& g, const Tensor& t) {
                const Tensor& x = g.inputs().at("x");
                return map(t, [&](Index i, float) {
                  double squares = 0;
                  for (Index d = i / c.shape.K * c.shape.K; d < (i / c.shape.K + 1) * c.shape.K;
                       ++d)
                    squares += x.at(d) * x.at(d);
                  return x.at(i) / (std::sqrt(squares) + 1e-6);
                });
              })},
      {"beta in bf16",
       "kda.prefill/decode/reference:reference+beta=bf16/gaussian/T=100/seed=1",
       {"contract"}},
      {"state in bf16",
       "kda.prefill/sequential/reference:reference+state=bf16/needle/T=1024/seed=1",
       {"contract", "accuracy"}},
      {"gamma in bf16",
       "kda.prefill/sequential/reference:reference+gamma=bf16/needle/T=256/seed=1",
       {"contract"}},
      {"handoff in bf16",
       "kda.prefill/cp4/reference:reference+handoff=bf16/needle/T=256/seed=1",
       {"contract", "equivalence"}},
      {"state as an fp16 operand, beyond its range",
       "kda.prefill/sequential/reference:reference+h.store=fp16/gaussian/T=256,state0=random/"
       "seed=1",
       {"health"},
       [](const Case& c, Group& g) {  // a healthy run gives the same bits at any scale
         TensorMap in = g.inputs();
         for (const char* name : {"v", "state0"}) in.at(name) = combine(in.at(name), 0x1p20);
         Observation seen = run_case(c, in, cpu());
         for (auto& [name, t] : seen.outputs) t = combine(t, 0x1p-20);
         return seen;
       }},
      {"output in bf16",
       "kda.prefill/sequential/reference:reference+output=bf16/gaussian/T=100,in=f32/seed=1",
       {"health"}},
      {"state as an fp16 operand, below its range",
       "kda.prefill/sequential/reference:reference+h.store=fp16/tiny/T=256/seed=1",
       {"contract"}},
  };
  return all;
}

TEST(Faults, EachFailsByItsRuleAndItsHealthyTwinDoesNot) {
  for (const Fault& f : faults()) {
    const Case c = parse_case(f.id);
    Group group(c, cpu(), {});
    const CellResult cell = judged(group, c, f.plant ? f.plant(c, group) : group.run(c));
    EXPECT_EQ(cell.verdict, Verdict::FAIL) << f.name << reasons(cell);
    for (const auto rule : f.rules)
      EXPECT_TRUE(fails_by(cell, rule)) << f.name << ", " << rule << reasons(cell);
    EXPECT_NE(reasons(cell).find(f.says), std::string::npos) << f.name << reasons(cell);

    Case healthy = c;
    healthy.plan.ran = c.plan.declared;
    const CellResult twin = judged(group, healthy, group.run(healthy));
    for (const auto rule : {"health", "contract", "growth", "equivalence", "oracle", "coverage"})
      EXPECT_FALSE(fails_by(twin, rule)) << "healthy: " << f.name << reasons(twin);
  }
}

}  // namespace
}  // namespace numgate
