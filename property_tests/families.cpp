#include "property_tests/families.h"

#include <algorithm>

#include "core/errors.h"
#include "property_tests/recipes.h"

namespace numgate {
namespace {

namespace pm = portable;
using Index = std::int64_t;

constexpr Index kSummaryTokens = 64;  // of each of kda.merge's summaries

double rounded(double x, Dtype to) {
  if (to != Dtype::bf16) return static_cast<float>(x);
  return std::bit_cast<float>(std::uint32_t{pm::to_bf16(x)} << 16);
}

// x / sqrt(sum x^2 + 1e-6) / divisor of a row of inputs.
Row unit(Row raw, Dtype in, double divisor) {
  return [=](const Draw& d, Index t, Index head, double* out) {
    raw(d, t, head, out);
    double squares = 1e-6;
    for (Index i = 0; i < d.width; ++i) {
      out[i] = rounded(out[i], in);
      squares += out[i] * out[i];
    }
    const double norm = std::sqrt(squares) * divisor;
    for (Index i = 0; i < d.width; ++i) out[i] /= norm;
  };
}

// The tensors of one case.
class Generator {
 public:
  explicit Generator(const Case& c) : c_(c), s_(c_.shape), r_(recipe(c.family)) {}

  Tensor tensor(const TensorSpec& spec, Segment tokens) const {
    auto shape = tensor_shape(spec, s_);
    const bool by_token = spec.shape.starts_with("T");
    if (by_token) shape[0] = tokens.size();
    Tensor out(tensor_dtype(spec, s_), shape);
    if (c_.stage == "kda.merge" && by_token)
      summaries(spec.name, tokens, out);
    else if (by_token)
      rows(spec, tokens, out);
    else
      parameters(spec.name, out);
    return out;
  }

 private:
  // What the tensor draws, and under which name.
  std::pair<std::string_view, Row> row(std::string_view name) const {
    if (name == "q") return {name, r_.q};
    if (name == "k") return {name, r_.k};
    if (name == "v") return {name, r_.v};
    if (name == "g_raw") return {name, r_.g_raw};
    if (name == "beta_raw") return {name, r_.beta_raw};
    if (name == "qhat")
      return {"q",
              r_.prepared_keys ? r_.q : unit(r_.q, s_.in, std::sqrt(static_cast<double>(s_.K)))};
    if (name == "khat") return {"k", r_.prepared_keys ? r_.k : unit(r_.k, s_.in, 1)};
    if (name == "g") return {"g_raw", r_.prepared_gates ? r_.g_raw : gates()};
    if (name == "beta") return {"beta_raw", r_.prepared_gates ? r_.beta_raw : betas()};
    if (name == "z") return {name, r_.z};
    return {name, r_.x ? r_.x : c_.stage == "kda.l2norm" ? r_.k : r_.v};  // x, o
  }

  Row gates() const {
    Tensor bias(Dtype::f32, {s_.HV, s_.K});
    parameters("dt_bias", bias);
    std::vector<double> slope;
    for (Index h = 0; h < s_.HV; ++h) slope.push_back(gate_slope(r_, s_, h));
    return [=, raw = r_.g_raw, in = s_.in, gate = s_.gate](const Draw& d, Index t, Index head,
                                                           double* out) {
      raw(d, t, head, out);
      for (Index i = 0; i < d.width; ++i)
        out[i] = gate_value(gate, slope[static_cast<std::size_t>(head)],
                            rounded(out[i], in) + bias.as<float>()[head * d.width + i]);
    };
  }

  Row betas() const {
    return [raw = r_.beta_raw, in = s_.in](const Draw& d, Index t, Index head, double* out) {
      raw(d, t, head, out);
      for (Index i = 0; i < d.width; ++i) out[i] = pm::sigmoid(rounded(out[i], in));
    };
  }

  Draw draw(std::string_view name, Index heads, Index width) const {
    return {s_, Stream(c_.seed, name), heads, width, s_.sequence_segments()};
  }

  void rows(const TensorSpec& spec, Segment tokens, Tensor& out) const {
    const auto [name, row] = this->row(spec.name);
    const Index heads = spec.shape == "T C" ? 1 : out.shape[1];
    const Index width = spec.shape == "T HV" ? 1 : out.shape.back();
    const Draw d = draw(name, heads, width);
#pragma omp parallel
    {
      std::vector<double> values(static_cast<std::size_t>(width));
#pragma omp for schedule(static)
      for (Index n = 0; n < tokens.size() * heads; ++n) {
        row(d, tokens.begin + n / heads, n % heads, values.data());
        for (Index i = 0; i < width; ++i)
          store(out, n * width + i, values[static_cast<std::size_t>(i)]);
      }
    }
  }

  // Inputs without tokens.
  void parameters(std::string_view name, Tensor& out) const {
    const Draw d = draw(name, s_.HV, s_.K);
    const bool state = name == "state0" || name == "conv_state0";
    if (state && s_.state0 == State0::zero) return;
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < out.size(); ++i) {
      const auto n = static_cast<std::uint64_t>(i);
      double x = 0;
      if (name == "A_log")
        x = pm::log(r_.A(s_, i));
      else if (name == "dt_bias")
        x = gate_bias(r_, d, i / s_.K, i % s_.K);
      else if (state)
        x = r_.integer_state ? d.stream.bits(n) % 15 - 7.0 : r_.state_scale * d.stream.normal(n);
      else if (c_.stage == "kda.conv")
        x = 0.5 * d.stream.normal(n);
      else
        x = 1 + 0.1 * d.stream.normal(n);
      store(out, i, x);
    }
  }

  // kda.merge's M or B: each summary that of 64 tokens of the family's kda.core case.
  void summaries(std::string_view name, Segment range, Tensor& out) const {
    Case core = c_;
    core.stage = "kda.core";
    core.shape.T *= kSummaryTokens;
    for (auto& cut : core.shape.cuts) cut *= kSummaryTokens;
    const Segment tokens{range.begin * kSummaryTokens, range.end * kSummaryTokens};
    const Tensor khat = generate(core, "khat", tokens), v = generate(core, "v", tokens),
                 g = generate(core, "g", tokens), beta = generate(core, "beta", tokens);
    const bool map = name == "M";
    const Index K = s_.K, columns = map ? K : s_.V, group = s_.HV / s_.H;
#pragma omp parallel for schedule(static)
    for (Index n = 0; n < range.size() * s_.HV; ++n) {
      const Index hv = n % s_.HV;
      std::vector<double> S(static_cast<std::size_t>(K * columns)),
          u(static_cast<std::size_t>(columns));
      if (map)
        for (Index i = 0; i < K; ++i) S[static_cast<std::size_t>(i * columns + i)] = 1;
      for (Index t = n / s_.HV * kSummaryTokens; t < (n / s_.HV + 1) * kSummaryTokens; ++t) {
        const Index gated = t * s_.HV + hv, keyed = t * s_.H + hv / group;
        for (Index j = 0; j < columns; ++j)
          u[static_cast<std::size_t>(j)] = map ? 0 : v.at(gated * s_.V + j);
        for (Index i = 0; i < K; ++i) {
          const double alpha = pm::exp(g.at(gated * K + i)), k = khat.at(keyed * K + i);
          double* row = &S[static_cast<std::size_t>(i * columns)];
          for (Index j = 0; j < columns; ++j) {
            row[j] *= alpha;
            u[static_cast<std::size_t>(j)] -= k * row[j];
          }
        }
        for (Index i = 0; i < K; ++i) {
          const double k = khat.at(keyed * K + i) * beta.at(gated);
          double* row = &S[static_cast<std::size_t>(i * columns)];
          for (Index j = 0; j < columns; ++j) row[j] += k * u[static_cast<std::size_t>(j)];
        }
      }
      for (Index i = 0; i < K * columns; ++i)
        store(out, n * K * columns + i, S[static_cast<std::size_t>(i)]);
    }
  }

  static void store(Tensor& out, Index i, double x) {
    if (out.dtype == Dtype::f32)
      out.as<float>()[i] = static_cast<float>(x);
    else
      out.as<std::uint16_t>()[i] = pm::to_bf16(x);
  }

  const Case c_;
  const Shape& s_;
  const Recipe& r_;
};

std::vector<std::string_view> stages_of(std::vector<std::string_view> more, bool raw = true) {
  std::vector<std::string_view> all{"kda.core", "kda.summary"};
  if (raw) all.insert(all.begin(), "kda.prefill");
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

bool FamilyInfo::applies_to(std::string_view stage) const {
  return std::find(stages.begin(), stages.end(), stage) != stages.end();
}

const std::vector<FamilyInfo>& families() {
  static const std::vector<FamilyInfo> all{
      {"gaussian", "ordinary inputs under a moderate decay of 1e-2 a token, with jitter",
       stages_of({"kda.merge", "kda.l2norm", "kda.gate", "kda.beta", "kda.conv", "kda.out_norm"})},
      {"needle",
       "early content in channels that later keys never touch, decay 1e-8 to 1e-5: a bias of the "
       "carried state or of "
       "a segment's map adds up with the context",
       stages_of({"kda.merge", "kda.gate"}), true},
      {"slow_decay", "decay 1e-4, beta 2.5e-3: every update is small against the state it joins",
       stages_of({"kda.merge", "kda.gate", "kda.beta"}), true},
      {"mixed_decay", "channels that live one token to a million side by side, weak writes",
       stages_of({"kda.merge", "kda.gate"}), true},
      {"log_sigmoid",
       "g = log sigmoid(normal): memory of a few tokens, which hides faults of the carried state",
       stages_of({"kda.merge", "kda.gate"})},
      {"near_collinear",
       "keys that agree to 1e-3, beta 0.98: an ill-conditioned triangular inverse",
       stages_of({"kda.merge", "kda.l2norm", "kda.beta"})},
      {"strong_decay",
       "g = -4.99 a token: underflow, and overflow wherever exponents are not differences <= 0",
       stages_of({"kda.gate"})},
      {"outlier_channels", "key channel 3 x 50, value channel 5 x 200, every 97th value row x 100",
       stages_of({"kda.merge", "kda.l2norm", "kda.conv", "kda.out_norm"})},
      {"tiny", "values of 1e-30; in the elementwise stages rows fade to 2^-100, past every epsilon",
       stages_of({"kda.merge", "kda.l2norm", "kda.conv", "kda.out_norm"})},
      {"fla_cp_test",
       "the inputs of FLA's context-parallel test: keys N(-50, 10), A from 1 to 8 over heads",
       stages_of({"kda.merge", "kda.l2norm", "kda.gate"})},
      {"alternating_sign", "tokens in pairs, the second taking back what the first wrote",
       stages_of({"kda.merge", "kda.beta", "kda.conv"})},
      {"ragged",
       "for lengths around multiples of 16 and 64: a strong gate and beta near 1 in every short "
       "tail",
       stages_of({"kda.merge", "kda.l2norm", "kda.gate", "kda.beta", "kda.conv", "kda.out_norm"})},
      {"saturated",
       "logits over [-104, 104]; odd heads at -18, the softplus' tail, under A = 1e6",
       {"kda.gate", "kda.beta", "kda.conv", "kda.out_norm"}},
      {"zero_beta", "beta 0 and g 0: the state must leave as it came",
       stages_of({"kda.merge"}, false)},
      {"exact_integers",
       "one-hot keys, small integers, beta 0 or 1, g 0: every format is exact, so every bit counts",
       stages_of({"kda.merge"}, false)},
  };
  return all;
}

const FamilyInfo& family(std::string_view name) {
  for (const auto& f : families())
    if (f.name == name) return f;
  throw UsageError("family", std::string(name), "unknown; `numgate list families` shows them");
}

void check_family(const Case& c) {
  if (!family(c.family).applies_to(c.stage))
    throw UsageError("family", c.family, "does not apply to stage " + c.stage);
}

TensorMap generate(const Case& c) {
  TensorMap out;
  for (const auto& spec : stage(c.stage).inputs)
    out.emplace(spec.name, generate(c, spec.name, {0, c.shape.T}));
  return out;
}

Tensor generate(const Case& c, std::string_view tensor, Segment tokens) {
  check_family(c);
  for (const auto& spec : stage(c.stage).inputs)
    if (spec.name == tensor) return Generator(c).tensor(spec, tokens);
  throw UsageError("tensor", std::string(tensor), "is no input of stage " + c.stage);
}

}  // namespace numgate
