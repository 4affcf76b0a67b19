// Speed of the truth, in processor time of one thread: double-double against MPFR token by token,
// and a full head. Goals: double-double a hundred times faster per token and column; a head of
// 1,048,576 tokens in a minute, 57 us a token.
#include <benchmark/benchmark.h>

#include <ctime>
#include <random>
#include <vector>

#include "core/stage.h"
#include "oracles/definitions/kda_recurrence.h"
#include "oracles/scalars/multiprecision.h"
#include "oracles/truth.h"

namespace numgate {
namespace {

constexpr std::int64_t kWidth = 128;

template <class Real>
struct Token {
  std::vector<Real> alpha, khat, qhat;
  Real beta = Real(0.5);
  Token() {
    std::mt19937 engine(1);
    std::normal_distribution<double> normal;
    for (std::int64_t d = 0; d < kWidth; ++d) {
      alpha.push_back(exp(-Real(std::abs(normal(engine)))));
      khat.push_back(Real(normal(engine)) / sqrt(Real(kWidth * 1.0)));
      qhat.push_back(Real(normal(engine)) / Real(kWidth * 1.0));
    }
  }
};

// Seconds a token and column, as counter `token_column`.
template <class Key, class Column>
void step(benchmark::State& state, int columns) {
  const Token<Key> token;
  std::vector<Column> S(kWidth, Column(0.5));
  for (auto _ : state) {
    Column o = definition::kda_step(kWidth, token.alpha.data(), token.khat.data(),
                                    token.qhat.data(), token.beta, Column(1.0), S.data());
    benchmark::DoNotOptimize(o);
  }
  state.counters["token_column"] =
      benchmark::Counter(static_cast<double>(state.iterations() * columns),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
void BM_StepDoubleDouble(benchmark::State& state) { step<DD, DDPack>(state, kLanes); }
void BM_StepMpfr(benchmark::State& state) { step<Mpfr256, Mpfr256>(state, 1); }
BENCHMARK(BM_StepDoubleDouble);
BENCHMARK(BM_StepMpfr);

// A whole head from raw inputs, with the given number of audited columns; counter `token` is
// seconds a token.
void BM_Head(benchmark::State& state) {
  constexpr std::int64_t kTokens = 8192;
  const Case c = parse_case(
      "kda.prefill/sequential/production/random/T=" + std::to_string(kTokens) + ",K=128/seed=1");
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  TensorMap inputs;
  for (const TensorSpec& spec : stage(c.stage).inputs) {
    Tensor& t = inputs[std::string(spec.name)] = Tensor(Dtype::f32, tensor_shape(spec, c.shape));
    for (std::int64_t i = 0; i < t.size(); ++i) t.as<float>()[i] = normal(engine);
  }
  TruthOptions options;
  options.threads = 1;
  options.audit_columns = static_cast<int>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(compute_truth(c, inputs, options).seconds);
  state.counters["token"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kTokens),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_Head)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// The ratio that the goal is about.
void BM_RatioOfMpfrToDoubleDouble(benchmark::State& state) {
  const Token<DD> token;
  const Token<Mpfr256> exact;
  std::vector<DDPack> S(kWidth, DDPack(0.5));
  std::vector<Mpfr256> column(kWidth, Mpfr256(0.5));
  double fast = 0, slow = 0;
  const auto seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  for (auto _ : state) {
    const double start = seconds();
    for (int i = 0; i < 20000; ++i)
      benchmark::DoNotOptimize(definition::kda_step(kWidth, token.alpha.data(), token.khat.data(),
                                                    token.qhat.data(), token.beta, DDPack(1.0),
                                                    S.data()));
    const double middle = seconds();
    for (int i = 0; i < 1000; ++i)
      benchmark::DoNotOptimize(definition::kda_step(kWidth, exact.alpha.data(), exact.khat.data(),
                                                    exact.qhat.data(), exact.beta, Mpfr256(1.0),
                                                    column.data()));
    fast += (middle - start) / 20000 / kLanes;
    slow += (seconds() - middle) / 1000;
  }
  state.counters["ratio"] = slow / fast;
}
BENCHMARK(BM_RatioOfMpfrToDoubleDouble)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace numgate
