#include "cli/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/machine.h"
#include "core/errors.h"
#include "oracles/truth_recurrence.h"
#include "property_tests/families.h"
#include "reports/files.h"

namespace numgate {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Case layer(const OracleOptions& o, std::int64_t tokens, std::int64_t heads) {
  Case c = parse_case(fmt::format("kda.prefill/sequential/production/{}/T={},H={},K=128/seed=42",
                                  o.family, tokens, heads));
  check_family(c);
  return c;
}

// The inputs of the layer, slab by slab.
class Generation {
 public:
  Generation(const Case& c, std::int64_t period) : case_(c), period_(period) {
    for (const char* name : {"A_log", "dt_bias"})
      parameters_.emplace(name, generate(case_, name, {0, 0}));
  }

  InputSlab slab(Segment tokens) {
    if (period_ == 0) return {tensors(tokens), tokens.begin};
    if (!first_) first_ = tensors({0, std::min(period_, case_.shape.T)});
    return {first_, tokens.begin - tokens.begin % period_};
  }
  double seconds() const { return seconds_; }

 private:
  std::shared_ptr<const TensorMap> tensors(Segment tokens) {
    const auto begin = Clock::now();
    auto all = std::make_shared<TensorMap>(parameters_);
    for (const char* name : {"q", "k", "v", "g_raw", "beta_raw"})
      all->emplace(name, generate(case_, name, tokens));
    seconds_ += since(begin);
    return all;
  }

  const Case case_;
  const std::int64_t period_;
  TensorMap parameters_;
  std::shared_ptr<const TensorMap> first_;
  double seconds_ = 0;
};

struct Comparison {
  std::int64_t elements = 0;
  double worst_over_radius = 0;  // |difference| over the sum of both radii

  void add(const TruthTensor& a, const TruthTensor& b) {
    for (std::size_t i = 0; i < a.hi.size(); ++i, ++elements) {
      const std::size_t row = i / static_cast<std::size_t>(a.shape.back());
      const double difference = std::abs((DD(a.hi[i], a.lo[i]) - DD(b.hi[i], b.lo[i])).hi),
                   ratio = difference / (a.radius[row] + b.radius[row]);
      if (!(ratio <= worst_over_radius)) worst_over_radius = ratio;
    }
  }
};

Comparison compare_with_cpu(const OracleOptions& o) {
  const Case c =
      layer(o, std::min(o.tokens, o.compared_tokens), std::min(o.heads, o.compared_heads));
  const TensorMap inputs = generate(c);
  TruthOptions options;
  options.keep_low = true;
  const Truth cpu = compute_truth(c, inputs, options);
  options.device = OracleDevice::cuda;
  const Truth cuda = compute_truth(c, inputs, options);
  Comparison all;
  for (const auto& [name, tensor] : cpu.outputs) all.add(cuda.outputs.at(name), tensor);
  return all;
}

}  // namespace

void run_oracle(const OracleOptions& o) {
  const auto backend = make_backend(o.backend);
  const Case c = layer(o, o.tokens, o.heads);
  const Shape& s = c.shape;
  RecurrenceRun run{.stage = {s, true, true, true, s.V}, .sequences = {{0, s.T}}, .inputs = {}};
  TruthOptions options;
  options.device = o.backend == "cuda" ? OracleDevice::cuda : OracleDevice::cpu;
  options.audit_threads = o.audit_threads;
  const auto engine = options.device == OracleDevice::cuda
                          ? make_cuda_engine(run.stage, s.T)
                          : make_cpu_engine(run.stage, options.threads);
  const std::int64_t slab = engine->slab_tokens(), period = (o.period + slab - 1) / slab * slab;
  Generation generation(c, period);
  run.inputs = [&](Segment tokens) { return generation.slab(tokens); };
  if (period > 0)
    run.audit_backlog = static_cast<std::size_t>(s.T / slab + 2);  // shares its inputs
  double walked = 0;
  const auto begin = Clock::now();
  run.state = [&](auto, const auto&) { walked = since(begin); };
  AuditResult audit;
  run_recurrence(*engine, run, options, nullptr, audit);
  const double wall = since(begin);
  const EngineSeconds seconds = engine->seconds();
  // A product a decay, a multiply-add a read, a write and an output.
  const double operations = 4.0 * static_cast<double>(s.T * s.HV * s.K) * static_cast<double>(s.V);
  const double truth = seconds.truth > 0 ? seconds.truth : walked - generation.seconds();
  const Comparison comparison = o.backend == "cuda" ? compare_with_cpu(o) : Comparison{};

  const std::string device = o.backend == "cuda" ? backend->device() : hardware();
  fmt::print(
      "truth of {} heads, {} tokens on {}: {:.2f} s, {:.3g} G multiply-adds/s; audit 2^{:.1f}"
      " over {} columns; {} elements differ from the CPU's by {:.2e} of the radii\n",
      s.HV, s.T, device, truth, 1e-9 * operations / truth, audit.worst_log2, audit.columns,
      comparison.elements, comparison.worst_over_radius);
  if (!o.out.empty()) {
    const nlohmann::ordered_json json{
        {"device", device},
        {"driver", backend->driver()},
        {"toolkit", backend->toolkit()},
        {"commit", git_commit()},
        {"command", o.command},
        {"family", o.family},
        {"heads", s.HV},
        {"tokens", s.T},
        {"K", s.K},
        {"V", s.V},
        {"period", period},
        {"slab_tokens", slab},
        {"seconds",
         {{"truth", truth},
          {"prepare", seconds.prepare},
          {"walk", seconds.walk},
          {"bound", seconds.bound},
          {"transfers", seconds.upload},
          {"generation", generation.seconds()},
          {"audit", audit.seconds},
          {"walked", walked},
          {"wall", wall}}},
        {"multiply_adds_per_second", operations / truth},
        {"audit",
         {{"columns", audit.columns},
          {"threads", audit.threads},
          {"operands", audit.prepared},
          {"worst_log2", audit.worst_log2},
          {"where", audit.worst_where}}},
        {"cpu_comparison",
         {{"elements", comparison.elements}, {"worst_over_radius", comparison.worst_over_radius}}}};
    write_file_atomically(o.out, json.dump(1) + "\n");
  }
  if (!(comparison.worst_over_radius <= 1))
    throw OracleError(
        fmt::format("the truths of the GPU and of the CPU differ by {} of their radii",
                    comparison.worst_over_radius));
}

}  // namespace numgate
