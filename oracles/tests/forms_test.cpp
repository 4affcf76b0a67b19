// Every form, read at a truth scalar, equals its definition to 2^-90 of the largest value.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "oracles/definitions/kda_recurrence.h"
#include "oracles/definitions/kda_scalar_stages.h"
#include "oracles/forms/exact_sites.h"
#include "oracles/forms/walk.h"
#include "oracles/scalars/multiprecision.h"

namespace numgate {
namespace {

using DD = DoubleDouble<double>;

Tensor random_tensor(std::uint64_t seed, std::vector<std::int64_t> shape, double low, double high) {
  Tensor t(Dtype::f32, std::move(shape));
  std::mt19937_64 bits(seed);
  std::uniform_real_distribution<float> uniform(static_cast<float>(low), static_cast<float>(high));
  for (std::int64_t i = 0; i < t.size(); ++i) t.as<float>()[i] = uniform(bits);
  return t;
}

TensorMap random_inputs(const Case& c) {
  TensorMap inputs;
  std::uint64_t seed = 1;
  for (const auto& spec : stage(c.stage).inputs) {
    double low = -1, high = 1;
    if (spec.name == "g") low = -0.5, high = 0;
    if (spec.name == "beta") low = 0;
    if (spec.name == "khat" || spec.name == "qhat") low = -0.15, high = 0.15;
    inputs.emplace(spec.name, random_tensor(seed++, tensor_shape(spec, c.shape), low, high));
  }
  return inputs;
}

template <class Real>
using Outputs = std::map<std::string, std::vector<Real>>;

// What the walk of the case's form emits, by tensor, at the elements' places.
template <class Real>
Outputs<Real> read_form(const Case& c, const TensorMap& inputs) {
  Outputs<Real> out;
  const std::int64_t heads = forms::heads_of(c);
  for (std::int64_t head = 0; head < heads; ++head) {
    forms::ExactSites<Real> sites(c.plan.ran.formats);
    forms::walk(sites, c, inputs, head,
                [&](std::string_view name, std::int64_t first, const forms::Matrix<Real>& rows) {
                  const bool by_token = name == "o" || name == "y" || name == "g" || name == "beta";
                  const std::int64_t count = by_token ? rows.rows() : 1,
                                     width = rows.size() / count;
                  auto& tensor = out[std::string(name)];
                  tensor.resize(std::max(
                      tensor.size(), std::size_t(((first + count - 1) * heads + heads) * width)));
                  for (std::int64_t r = 0; r < count; ++r)
                    std::copy_n(rows.data() + r * width, width,
                                tensor.begin() + ((first + r) * heads + head) * width);
                });
  }
  return out;
}

// The recurrence by its definition, from inputs of kda.core or kda.prefill.
template <class Real>
Outputs<Real> read_definition(const Case& c, const TensorMap& inputs) {
  const Shape& s = c.shape;
  const auto sequences = s.sequence_segments();
  Outputs<Real> out;
  out["o"].resize(std::size_t(s.T * s.HV * s.V));
  out["state"].resize(sequences.size() * std::size_t(s.HV * s.K * s.V));
  const auto in = [&](const char* name, std::int64_t i) { return Real(inputs.at(name).at(i)); };
  std::vector<Real> x(std::size_t(s.K)), k(x), q(x), alpha(x), S(x);
  const bool raw = c.stage == "kda.prefill";
  for (std::int64_t h = 0; h < s.HV; ++h)
    for (std::int64_t j = 0; j < s.V; ++j)
      for (std::size_t n = 0; n < sequences.size(); ++n) {
        for (std::int64_t d = 0; d < s.K; ++d)
          S[d] = in("state0", ((std::int64_t(n) * s.HV + h) * s.K + d) * s.V + j);
        for (std::int64_t t = sequences[n].begin; t < sequences[n].end; ++t) {
          const std::int64_t key = (t * s.H + h / (s.HV / s.H)) * s.K, value = (t * s.HV + h) * s.K;
          const auto normed = [&](const char* name, std::vector<Real>& y) {
            for (std::int64_t d = 0; d < s.K; ++d) x[d] = in(name, key + d);
            definition::l2_norm(s.K, x.data(), y.data());
          };
          Real beta = in(raw ? "beta_raw" : "beta", t * s.HV + h);
          if (raw) {
            beta = definition::beta(beta);
            normed("k", k);
            normed("q", q);
          }
          for (std::int64_t d = 0; d < s.K; ++d) {
            using std::exp;
            if (raw) {
              const Real rate = exp(in("A_log", h)), bias = in("dt_bias", h * s.K + d),
                         g = in("g_raw", value + d);
              q[d] *= definition::query_scale<Real>(s.K);
              alpha[d] = exp(s.gate == Gate::bounded ? definition::bounded_gate(g, rate, bias)
                                                     : definition::plain_gate(g, rate, bias));
            } else {
              k[d] = in("khat", key + d);
              q[d] = in("qhat", key + d);
              alpha[d] = exp(in("g", value + d));
            }
          }
          const std::int64_t element = (t * s.HV + h) * s.V + j;
          out["o"][element] = definition::kda_step(s.K, alpha.data(), k.data(), q.data(), beta,
                                                   in("v", element), S.data());
        }
        for (std::int64_t d = 0; d < s.K; ++d)
          out["state"][((n * s.HV + h) * s.K + d) * s.V + j] = S[d];
      }
  return out;
}

template <class Real>
double log2_of_error(const std::vector<Real>& a, const std::vector<Real>& b) {
  EXPECT_EQ(a.size(), b.size());
  double error = 0, largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    error = std::max(error, std::abs(to_double(a[i] - b[i])));
    largest = std::max(largest, std::abs(to_double(b[i])));
  }
  return std::log2(error / largest);
}

template <class Real>
void expect_definition(const std::string& id) {
  Case c = parse_case(id);
  const TensorMap inputs = random_inputs(c);
  const auto truth = read_definition<Real>(c, inputs);
  for (const char* plan : {"reference", "production"}) {  // they name different algorithms
    c.plan = parse_plan_pair(plan);
    const auto form = read_form<Real>(c, inputs);
    EXPECT_LT(log2_of_error(form.at("o"), truth.at("o")), -90) << id;
    EXPECT_LT(log2_of_error(form.at("state"), truth.at("state")), -90) << id;
    if (c.schedule.kind == ScheduleKind::cp) {
      EXPECT_LT(log2_of_error(form.at("fold"), truth.at("state")), -90) << id;
    }
  }
}

class FormOfSchedule : public testing::TestWithParam<const char*> {};

TEST_P(FormOfSchedule, EqualsTheRecurrence) { expect_definition<DD>(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Kda, FormOfSchedule,
    testing::Values(
        "kda.core/sequential/reference/x/T=1,K=64,state0=random/seed=0",
        "kda.core/sequential/reference/x/T=64,K=64,state0=random/seed=0",
        "kda.core/sequential/reference/x/T=139,K=64,V=128,H=1,HV=2,state0=random/seed=0",
        "kda.core/chunked@50/reference/x/T=139,K=64,state0=random/seed=0",
        "kda.core/resume@17/reference/x/T=90,K=64,state0=random/seed=0",
        "kda.core/varlen/reference/x/T=150,K=64,state0=random,cuts=1+70/seed=0",
        "kda.core/cp3/reference/x/T=200,K=64,state0=random/seed=0",
        "kda.core/cp3/production/x/T=200,K=64,state0=random/seed=0",
        "kda.core/cp8/reference/x/T=10,K=64,state0=random/seed=0",
        "kda.core/decode/reference/x/T=100,K=64,state0=random/seed=0",
        "kda.core/replay@16/reference/x/T=100,K=64,state0=random/seed=0",
        "kda.core/replay@1/reference/x/T=20,K=64,state0=random/seed=0",
        "kda.core/tp2/reference/x/T=40,H=2,HV=2,K=64,state0=random/seed=0",
        "kda.prefill/sequential/reference/x/T=70,K=64,HV=2,state0=random/seed=0",
        "kda.prefill/cp2/reference/x/T=100,K=64,gate=plain,state0=random/seed=0"));

TEST(Forms, EqualTheRecurrenceInMpfr) {
  for (const char* plan : {"reference", "production"})
    expect_definition<Mpfr256>(std::string("kda.core/cp2/") + plan +
                               "/x/T=70,K=64,state0=random/seed=0");
}

// A segment's map applied to a state is the segment.
TEST(Forms, SummaryAndMerge) {
  const Case core = parse_case("kda.core/sequential/reference/x/T=77,K=64,state0=random/seed=0");
  const TensorMap inputs = random_inputs(core);
  const auto truth = read_definition<DD>(core, inputs);
  for (const char* chain : {"ieee", "diag_tf32x3"}) {
    const auto map = read_form<DD>(parse_case("kda.summary/sequential/reference+summary.chain=" +
                                              std::string(chain) + "/x/T=77,K=64/seed=0"),
                                   inputs);
    std::vector<DD> state(map.at("B"));
    for (int d = 0; d < 64; ++d)
      for (int m = 0; m < 64; ++m)
        for (int j = 0; j < 64; ++j)
          state[d * 64 + j] += map.at("M")[d * 64 + m] * DD(inputs.at("state0").at(m * 64 + j));
    EXPECT_LT(log2_of_error(state, truth.at("state")), -90) << chain;
  }

  const Case merge = parse_case("kda.merge/sequential/reference/x/T=3,K=64,state0=random/seed=0");
  const TensorMap maps = random_inputs(merge);
  std::vector<DD> F(64 * 64), next(F);
  for (int i = 0; i < 64 * 64; ++i) F[i] = maps.at("state0").at(i);
  for (int r = 0; r < 3; ++r) {
    for (int d = 0; d < 64; ++d)
      for (int j = 0; j < 64; ++j) {
        next[d * 64 + j] = maps.at("B").at((r * 64 + d) * 64 + j);
        for (int m = 0; m < 64; ++m)
          next[d * 64 + j] += DD(maps.at("M").at((r * 64 + d) * 64 + m)) * F[m * 64 + j];
      }
    F = next;
  }
  EXPECT_LT(log2_of_error(read_form<DD>(merge, maps).at("state"), F), -90);
}

TEST(Forms, ScalarStages) {
  const auto check = [](const std::string& id, const char* output, auto definition_of) {
    const Case c = parse_case(id);
    const TensorMap inputs = random_inputs(c);
    EXPECT_LT(log2_of_error(read_form<DD>(c, inputs).at(output), definition_of(c.shape, inputs)),
              -90)
        << id;
  };
  using Row = std::vector<DD>;
  const auto row = [](const Tensor& t, std::int64_t first, std::int64_t n) {
    Row r(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) r[i] = t.at(first + i);
    return r;
  };
  check("kda.l2norm/sequential/reference/x/T=70,H=2,K=64/seed=0", "y",
        [&](const Shape& s, const TensorMap& in) {
          Row y(std::size_t(s.T * s.H * s.K));
          for (std::int64_t i = 0; i < s.T * s.H; ++i)
            definition::l2_norm(s.K, row(in.at("x"), i * s.K, s.K).data(), y.data() + i * s.K);
          return y;
        });
  check("kda.beta/sequential/reference/x/T=70,H=3,K=64/seed=0", "beta",
        [&](const Shape& s, const TensorMap& in) {
          Row y = row(in.at("beta_raw"), 0, s.T * s.HV);
          for (auto& x : y) x = definition::beta(x);
          return y;
        });
  for (const char* kind : {"bounded", "plain"})
    check("kda.gate/sequential/reference/x/T=70,H=2,K=64,gate=" + std::string(kind) + "/seed=0",
          "g", [&](const Shape& s, const TensorMap& in) {
            Row y = row(in.at("g_raw"), 0, s.T * s.HV * s.K);
            for (std::int64_t i = 0; i < s.T * s.HV * s.K; ++i) {
              const std::int64_t channel = i % (s.HV * s.K);
              const DD rate = exp(DD(in.at("A_log").at(channel / s.K))),
                       bias = in.at("dt_bias").at(channel);
              y[i] = s.gate == Gate::bounded ? definition::bounded_gate(y[i], rate, bias)
                                             : definition::plain_gate(y[i], rate, bias);
            }
            return y;
          });
  check("kda.out_norm/sequential/reference/x/T=70,H=2,K=64/seed=0", "y",
        [&](const Shape& s, const TensorMap& in) {
          Row y(std::size_t(s.T * s.HV * s.V));
          for (std::int64_t i = 0; i < s.T * s.HV; ++i)
            definition::gated_rms_norm(s.V, row(in.at("o"), i * s.V, s.V).data(),
                                       row(in.at("z"), i * s.V, s.V).data(),
                                       row(in.at("w"), 0, s.V).data(), y.data() + i * s.V);
          return y;
        });
  check("kda.conv/varlen/reference/x/T=140,H=1,K=64,cuts=2+70/seed=0", "y",
        [&](const Shape& s, const TensorMap& in) {
          const std::int64_t C = s.channels();
          Row y(std::size_t(s.T * C));
          const auto sequences = s.sequence_segments();
          for (std::size_t n = 0; n < sequences.size(); ++n)
            for (std::int64_t t = sequences[n].begin; t < sequences[n].end; ++t)
              for (std::int64_t c = 0; c < C; ++c) {
                DD window[4];
                for (std::int64_t j = 0; j < 4; ++j) {
                  const std::int64_t from = t - 3 + j;
                  window[j] =
                      from >= sequences[n].begin
                          ? in.at("x").at(from * C + c)
                          : in.at("conv_state0")
                                .at((std::int64_t(n) * C + c) * 3 + 3 + from - sequences[n].begin);
                }
                y[t * C + c] = definition::short_conv(row(in.at("w"), c * 4, 4).data(), window);
              }
          return y;
        });
}

}  // namespace
}  // namespace numgate
