#include "oracles/truth.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "core/errors.h"
#include "core/stage.h"
#include "oracles/truth_merge.h"
#include "oracles/truth_recurrence.h"
#include "oracles/truth_rows.h"

namespace numgate {
namespace {

std::size_t elements(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (auto d : shape) n *= d;
  return static_cast<std::size_t>(n);
}

bool is_state(std::string_view name) { return name == "state0" || name == "conv_state0"; }

void require_inputs(const StageInfo& info, const Shape& shape, const TensorMap& inputs) {
  for (const TensorSpec& spec : info.inputs) {
    const std::string name(spec.name);
    const auto found = inputs.find(name);
    if (found == inputs.end()) {
      if (is_state(name)) continue;
      throw UsageError("input", name, "is missing for stage " + std::string(info.name));
    }
    if (found->second.shape != tensor_shape(spec, shape))
      throw UsageError("input", name,
                       "is not of the shape " + std::string(spec.shape) + " of " + shape.text());
  }
}

TruthTensor& allocate(Truth& truth, const StageInfo& info, const Shape& shape, const char* name,
                      bool low) {
  for (const TensorSpec& spec : info.outputs)
    if (spec.name == name) {
      TruthTensor& t = truth.outputs[name];
      t.shape = tensor_shape(spec, shape);
      t.hi.resize(elements(t.shape));
      if (low) t.lo.resize(t.hi.size());
      t.radius.resize(t.hi.size() / static_cast<std::size_t>(t.shape.back()));
      return t;
    }
  throw UsageError("output", name, "is not one of stage " + std::string(info.name));
}

struct L2Norm {
  const Tensor& x;
  std::int64_t K;
  template <class Real>
  void rows(std::int64_t row, int count, Real* y) const {
    for (std::int64_t d = 0; d < K; ++d) y[d] = load<Real>(x, row * K + d, K, count);
    definition::l2_norm(K, y, y);
  }
};

struct LogDecay {
  const TensorMap& inputs;
  const Shape& shape;
  template <class Real>
  void rows(std::int64_t row, int count, Real* y) const {
    using std::exp;
    const std::int64_t K = shape.K, HV = shape.HV;
    const auto head = [&](int l) { return (row + l) % HV; };
    const Real rate =
        exp(Lanes<Real>::gather(count, [&](int l) { return inputs.at("A_log").at(head(l)); }));
    for (std::int64_t d = 0; d < K; ++d) {
      const Real g = load<Real>(inputs.at("g_raw"), row * K + d, K, count);
      const Real bias = Lanes<Real>::gather(
          count, [&](int l) { return inputs.at("dt_bias").at(head(l) * K + d); });
      y[d] = shape.gate == Gate::bounded ? definition::bounded_gate(g, rate, bias)
                                         : definition::plain_gate(g, rate, bias);
    }
  }
};

// A row is one token of all heads.
struct WriteStrength {
  const Tensor& raw;
  std::int64_t HV;
  template <class Real>
  void rows(std::int64_t row, int count, Real* y) const {
    for (std::int64_t h = 0; h < HV; ++h)
      y[h] = definition::beta(load<Real>(raw, row * HV + h, HV, count));
  }
};

struct OutNorm {
  const TensorMap& inputs;
  std::int64_t V;
  template <class Real>
  void rows(std::int64_t row, int count, Real* y) const {
    std::vector<Real> z(static_cast<std::size_t>(V)), w(z.size());
    for (std::int64_t i = 0; i < V; ++i) {
      y[i] = load<Real>(inputs.at("o"), row * V + i, V, count);
      z[static_cast<std::size_t>(i)] = load<Real>(inputs.at("z"), row * V + i, V, count);
      w[static_cast<std::size_t>(i)] = Real(inputs.at("w").at(i));
    }
    definition::gated_rms_norm(V, y, z.data(), w.data(), y);
  }
};

struct ShortConv {
  const Shape& shape;
  const Tensor &x, &w;
  const Tensor* state0;  // may be null: zero

  // x[t - back] of the sequence that t lies in.
  double raw(std::int64_t t, std::int64_t back, std::int64_t c) const {
    const auto next = std::upper_bound(shape.cuts.begin(), shape.cuts.end(), t);
    const std::int64_t n = next - shape.cuts.begin(), begin = n == 0 ? 0 : *(next - 1),
                       C = shape.channels();
    if (t - back >= begin) return x.at((t - back) * C + c);
    return state0 ? state0->at((n * C + c) * 3 + 3 + (t - back - begin)) : 0.0;
  }
  template <class Real>
  void rows(std::int64_t t, int count, Real* y) const {
    for (std::int64_t c = 0; c < shape.channels(); ++c) {
      Real weights[definition::kConvWidth], window[definition::kConvWidth];
      for (std::int64_t j = 0; j < definition::kConvWidth; ++j) {
        weights[j] = Real(w.at(c * definition::kConvWidth + j));
        window[j] = Lanes<Real>::gather(count, [&](int l) { return raw(t + l, 3 - j, c); });
      }
      y[c] = definition::short_conv(weights, window);
    }
  }
  // The four products may cancel, and |d SiLU| <= 1.1.
  double magnitude(std::int64_t t) const {
    double largest = 0;
    for (std::int64_t c = 0; c < shape.channels(); ++c) {
      double sum = 0;
      for (std::int64_t j = 0; j < definition::kConvWidth; ++j)
        sum += std::abs(w.at(c * definition::kConvWidth + j) * raw(t, 3 - j, c));
      largest = std::max(largest, 1.1 * sum);
    }
    return largest;
  }
  // The last three raw inputs, [N, C, 3].
  void final_state(TruthTensor& out) const {
    const auto sequences = shape.sequence_segments();
    std::size_t i = 0;
    for (const Segment& s : sequences)
      for (std::int64_t c = 0; c < shape.channels(); ++c)
        for (std::int64_t back = 2; back >= 0; --back) out.hi[i++] = raw(s.end - 1, back, c);
  }
};

// One walk over the case's inputs; fills o (where not null) and state.
void walk(const Case& c, const TensorMap& inputs, bool value, RecurrenceRun run, TruthTensor* o,
          TruthTensor& state, const TruthOptions& options,
          const std::function<void(double)>& progress, AuditResult& audit) {
  const Shape& shape = c.shape;
  run.stage = {shape, c.stage == "kda.prefill", o != nullptr, value, value ? shape.V : shape.K};
  // Not owned: the inputs outlive the run.
  run.inputs = [all = std::shared_ptr<const TensorMap>(&inputs, [](auto*) {})](Segment) {
    return InputSlab{all, 0};
  };
  const std::int64_t rows = shape.HV, row = shape.HV * run.stage.columns;
  if (o)
    run.output = [=](RecurrenceEngine& popped, Segment tokens) {
      popped.outputs(o->hi.data() + tokens.begin * row,
                     o->lo.empty() ? nullptr : o->lo.data() + tokens.begin * row,
                     o->radius.data() + tokens.begin * rows);
    };
  run.state = [&](std::int64_t n, const FinalState& last) {
    std::copy(last.hi.begin(), last.hi.end(), state.hi.begin() + n * row * shape.K);
    if (!state.lo.empty())
      std::copy(last.lo.begin(), last.lo.end(), state.lo.begin() + n * row * shape.K);
    for (std::int64_t i = 0; i < rows * shape.K; ++i)
      state.radius[static_cast<std::size_t>(n * rows * shape.K + i)] =
          last.radius[static_cast<std::size_t>(i / shape.K)];
  };
  const auto longest =
      std::max_element(run.sequences.begin(), run.sequences.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  const auto engine = options.device == TruthDevice::cuda
                          ? make_cuda_engine(run.stage, longest->size())
                          : make_cpu_engine(run.stage, options.threads);
  run_recurrence(*engine, run, options, progress, audit);
}

// kda.prefill and kda.core.
void recurrence(const Case& c, const TensorMap& inputs, const TruthOptions& options, TruthTensor& o,
                TruthTensor& state, AuditResult& audit) {
  RecurrenceRun run{.stage = {}, .sequences = c.shape.sequence_segments(), .inputs = {}};
  if (inputs.contains("state0"))
    run.state0 = [&state0 = inputs.at("state0"), s = c.shape](std::int64_t n, std::int64_t h,
                                                              std::int64_t d, std::int64_t column) {
      return state0.at(((n * s.HV + h) * s.K + d) * s.V + column);
    };
  walk(c, inputs, true, run, &o, state, options, options.progress, audit);
}

// kda.summary: B from zero with the values, M from the identity without.
void summary(const Case& c, const TensorMap& inputs, const TruthOptions& options, TruthTensor& M,
             TruthTensor& B, AuditResult& audit) {
  const auto half = [&](double done) {
    return [&options, done](double f) {
      if (options.progress) options.progress(done + f / 2);
    };
  };
  RecurrenceRun run{.stage = {}, .sequences = {{0, c.shape.T}}, .inputs = {}};
  walk(c, inputs, true, run, nullptr, B, options, half(0), audit);
  run.state0 = [](auto, auto, std::int64_t d, std::int64_t column) {
    return d == column ? 1.0 : 0.0;
  };
  walk(c, inputs, false, run, nullptr, M, options, half(0.5), audit);
}

}  // namespace

Truth compute_truth(const Case& c, const TensorMap& inputs, const TruthOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const StageInfo& info = stage(c.stage);
  const Shape& shape = c.shape;
  require_inputs(info, shape, inputs);
  Truth truth;
  const auto output = [&](const char* name) -> TruthTensor& {
    return allocate(truth, info, shape, name, options.keep_low);
  };
  const Tensor* state0 = inputs.contains("state0") ? &inputs.at("state0") : nullptr;
  const auto rows = [&](const auto& s, double error, TruthTensor& y) {
    run_rows(s, error, options, y, truth.audit);
  };

  if (c.stage == "kda.l2norm") {
    rows(L2Norm{inputs.at("x"), shape.K}, kScalarStageError, output("y"));
  } else if (c.stage == "kda.gate") {
    rows(LogDecay{inputs, shape}, kGateError, output("g"));
  } else if (c.stage == "kda.beta") {
    rows(WriteStrength{inputs.at("beta_raw"), shape.HV}, kScalarStageError, output("beta"));
  } else if (c.stage == "kda.out_norm") {
    rows(OutNorm{inputs, shape.V}, kScalarStageError, output("y"));
  } else if (c.stage == "kda.conv") {
    const ShortConv conv{shape, inputs.at("x"), inputs.at("w"),
                         inputs.contains("conv_state0") ? &inputs.at("conv_state0") : nullptr};
    rows(conv, kScalarStageError, output("y"));
    conv.final_state(output("conv_state"));
  } else if (c.stage == "kda.merge") {
    merge_summaries(shape, inputs.at("M"), inputs.at("B"), state0, options, output("state"),
                    truth.audit);
  } else {
    if (shape.K % kLanes != 0 || shape.V % kLanes != 0)
      throw UsageError("K,V", shape.text(), "must be multiples of 8");
    if (c.stage == "kda.summary")
      summary(c, inputs, options, output("M"), output("B"), truth.audit);
    else
      recurrence(c, inputs, options, output("o"), output("state"), truth.audit);
  }
  truth.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return truth;
}

}  // namespace numgate
