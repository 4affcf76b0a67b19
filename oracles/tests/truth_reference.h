// Test support: random inputs of a stage, and the stage evaluated naively with any scalar, one
// element at a time.
#pragma once
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/case_id.h"
#include "core/stage.h"
#include "oracles/definitions/kda_recurrence.h"
#include "oracles/definitions/kda_scalar_stages.h"
#include "oracles/scalars/multiprecision.h"
#include "oracles/truth.h"

namespace numgate {

inline Case test_case(const std::string& stage, const std::string& shape) {
  Case c = parse_case(stage + "/sequential/production/random/T=1/seed=1");
  c.shape = parse_shape(shape);
  return c;
}

// Normal numbers in fp32; keys of the core normalised to about 1, gates negative, beta in (0, 1).
inline TensorMap random_inputs(const Case& c, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  TensorMap inputs;
  for (const TensorSpec& spec : stage(c.stage).inputs) {
    Tensor t(Dtype::f32, tensor_shape(spec, c.shape));
    const bool core = c.stage == "kda.core" || c.stage == "kda.summary";
    for (std::int64_t i = 0; i < t.size(); ++i) {
      float x = normal(engine);
      if (core && (spec.name == "khat" || spec.name == "qhat"))
        x /= 1.05F * std::sqrt(static_cast<float>(c.shape.K));
      if (core && spec.name == "g") x = -0.1F * std::abs(x);
      if (core && spec.name == "beta") x = 1.0F / (1.0F + std::exp(-x));
      if (c.stage == "kda.merge" && spec.name == "M") x /= std::sqrt(static_cast<float>(c.shape.K));
      t.as<float>()[i] = x;
    }
    inputs[std::string(spec.name)] = t;
  }
  return inputs;
}

template <class Real>
using Values = std::map<std::string, std::vector<Real>>;

template <class Real>
Values<Real> naive(const Case& c, const TensorMap& in) {
  const Shape& s = c.shape;
  const std::int64_t T = s.T, H = s.H, HV = s.HV, K = s.K, V = s.V, C = s.channels();
  const auto slice = [&](const char* name, std::int64_t at, std::int64_t n) {
    std::vector<Real> x;
    for (std::int64_t i = 0; i < n; ++i)
      x.push_back(in.contains(name) ? Real(in.at(name).at(at + i)) : Real(0.0));
    return x;
  };
  const auto one = [&](const char* name, std::int64_t at) { return slice(name, at, 1)[0]; };
  const auto append = [](std::vector<Real>& to, const std::vector<Real>& x) {
    to.insert(to.end(), x.begin(), x.end());
  };
  const auto gate = [&](const Real& raw, std::int64_t h, std::int64_t d) {
    const Real rate = exp(one("A_log", h)), bias = one("dt_bias", h * K + d);
    return s.gate == Gate::bounded ? definition::bounded_gate(raw, rate, bias)
                                   : definition::plain_gate(raw, rate, bias);
  };
  Values<Real> out;
  if (c.stage == "kda.l2norm") {
    for (std::int64_t r = 0; r < T * H; ++r) {
      auto x = slice("x", r * K, K);
      definition::l2_norm(K, x.data(), x.data());
      append(out["y"], x);
    }
  } else if (c.stage == "kda.gate") {
    for (std::int64_t i = 0; i < T * HV * K; ++i)
      out["g"].push_back(gate(one("g_raw", i), i / K % HV, i % K));
  } else if (c.stage == "kda.beta") {
    for (std::int64_t i = 0; i < T * HV; ++i)
      out["beta"].push_back(definition::beta(one("beta_raw", i)));
  } else if (c.stage == "kda.out_norm") {
    for (std::int64_t r = 0; r < T * HV; ++r) {
      auto o = slice("o", r * V, V), z = slice("z", r * V, V), w = slice("w", 0, V);
      definition::gated_rms_norm(V, o.data(), z.data(), w.data(), o.data());
      append(out["y"], o);
    }
  } else if (c.stage == "kda.conv") {
    std::int64_t n = 0;
    out["y"].resize(static_cast<std::size_t>(T * C));
    for (const Segment& sequence : s.sequence_segments()) {
      for (std::int64_t ch = 0; ch < C; ++ch) {
        auto line = slice("conv_state0", (n * C + ch) * 3, 3);  // then the inputs
        for (std::int64_t t = sequence.begin; t < sequence.end; ++t)
          line.push_back(one("x", t * C + ch));
        const auto w = slice("w", ch * 4, 4);
        for (std::int64_t t = 0; t < sequence.size(); ++t)
          out["y"][static_cast<std::size_t>((sequence.begin + t) * C + ch)] =
              definition::short_conv(w.data(), line.data() + t);
        append(out["conv_state"], {line.end() - 3, line.end()});
      }
      ++n;
    }
  } else if (c.stage == "kda.merge") {
    for (std::int64_t h = 0; h < HV; ++h) {
      std::vector<std::vector<Real>> S;
      for (std::int64_t v = 0; v < V; ++v) {
        std::vector<Real> column, B, next(static_cast<std::size_t>(K));
        for (std::int64_t d = 0; d < K; ++d) column.push_back(one("state0", (h * K + d) * V + v));
        for (std::int64_t t = 0; t < T; ++t) {
          B.clear();
          for (std::int64_t d = 0; d < K; ++d)
            B.push_back(one("B", ((t * HV + h) * K + d) * V + v));
          definition::merge(K, slice("M", (t * HV + h) * K * K, K * K).data(), B.data(),
                            column.data(), next.data());
          column = next;
        }
        S.push_back(column);
      }
      for (std::int64_t d = 0; d < K; ++d)
        for (const auto& column : S) out["state"].push_back(column[static_cast<std::size_t>(d)]);
    }
  } else {
    const bool raw = c.stage == "kda.prefill", summary = c.stage == "kda.summary";
    out["o"].resize(static_cast<std::size_t>(T * HV * V));
    std::int64_t n = 0;
    for (const Segment& sequence : s.sequence_segments()) {
      for (std::int64_t h = 0; h < HV; ++h) {
        // Columns of S; a summary appends those of M, which see v = 0.
        const std::int64_t columns = V + (summary ? K : 0);
        std::vector<std::vector<Real>> S;
        for (std::int64_t v = 0; v < columns; ++v) {
          S.emplace_back();
          for (std::int64_t d = 0; d < K; ++d)
            S.back().push_back(v >= V ? Real(d == v - V ? 1.0 : 0.0)
                                      : one("state0", ((n * HV + h) * K + d) * V + v));
        }
        for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
          const std::int64_t key = (t * H + h / (HV / H)) * K;
          auto k = slice(raw ? "k" : "khat", key, K), q = slice(raw ? "q" : "qhat", key, K),
               alpha = slice(raw ? "g_raw" : "g", (t * HV + h) * K, K);
          Real beta = one(raw ? "beta_raw" : "beta", t * HV + h);
          if (raw) {
            definition::l2_norm(K, k.data(), k.data());
            definition::l2_norm(K, q.data(), q.data());
            for (auto& x : q) x *= definition::query_scale<Real>(K);
            beta = definition::beta(beta);
            for (std::int64_t d = 0; d < K; ++d)
              alpha[static_cast<std::size_t>(d)] = gate(alpha[static_cast<std::size_t>(d)], h, d);
          }
          for (auto& a : alpha) a = exp(a);
          for (std::int64_t v = 0; v < columns; ++v) {
            auto* column = S[static_cast<std::size_t>(v)].data();
            const Real value = v < V ? one("v", (t * HV + h) * V + v) : Real(0.0);
            const Real o =
                definition::kda_step(K, alpha.data(), k.data(), q.data(), beta, value, column);
            if (v < V) out["o"][static_cast<std::size_t>((t * HV + h) * V + v)] = o;
          }
        }
        for (std::int64_t d = 0; d < K; ++d)
          for (std::int64_t v = 0; v < columns; ++v)
            out[v >= V    ? "M"
                : summary ? "B"
                          : "state"]
                .push_back(S[static_cast<std::size_t>(v)][static_cast<std::size_t>(d)]);
      }
      ++n;
    }
    if (summary) out.erase("o");
  }
  return out;
}

}  // namespace numgate
