// The definitions themselves: what must hold exactly, and the recurrence in its matrix form.
#include <gtest/gtest.h>

#include "core/errors.h"
#include "oracles/tests/truth_reference.h"

namespace numgate {
namespace {

TruthOptions low() {
  TruthOptions options;
  options.keep_low = true;
  return options;
}

float& element(TensorMap& inputs, const char* name, std::int64_t i) {
  return inputs.at(name).as<float>()[i];
}

void fill(TensorMap& inputs, const char* name, float value) {
  for (std::int64_t i = 0; i < inputs.at(name).size(); ++i) element(inputs, name, i) = value;
}

TEST(KdaRecurrence, IsItsMatrixForm) {
  // S' = (I - beta k k^T) Diag(alpha) S + beta k v^T, o = S'^T q, by dense products in double.
  const Case c = test_case("kda.core", "T=6,H=1,K=64,V=128,state0=random");
  const TensorMap in = random_inputs(c);
  const Truth truth = compute_truth(c, in);
  const std::int64_t K = 64, V = 128;
  std::vector<double> S(static_cast<std::size_t>(K * V)), next(S.size());
  for (std::int64_t i = 0; i < K * V; ++i) S[static_cast<std::size_t>(i)] = in.at("state0").at(i);
  for (std::int64_t t = 0; t < 6; ++t) {
    const double beta = in.at("beta").at(t);
    for (std::int64_t d = 0; d < K; ++d)
      for (std::int64_t v = 0; v < V; ++v) {
        double sum = beta * in.at("khat").at(t * K + d) * in.at("v").at(t * V + v);
        for (std::int64_t j = 0; j < K; ++j)
          sum += ((d == j ? 1.0 : 0.0) -
                  beta * in.at("khat").at(t * K + d) * in.at("khat").at(t * K + j)) *
                 std::exp(in.at("g").at(t * K + j)) * S[static_cast<std::size_t>(j * V + v)];
        next[static_cast<std::size_t>(d * V + v)] = sum;
      }
    S = next;
    for (std::int64_t v = 0; v < V; ++v) {
      double o = 0;
      for (std::int64_t d = 0; d < K; ++d)
        o += in.at("qhat").at(t * K + d) * S[static_cast<std::size_t>(d * V + v)];
      EXPECT_NEAR(truth.outputs.at("o").hi[static_cast<std::size_t>(t * V + v)], o, 1e-13);
    }
  }
  for (std::size_t i = 0; i < S.size(); ++i)
    EXPECT_NEAR(truth.outputs.at("state").hi[i], S[i], 1e-13);
}

TEST(KdaRecurrence, ZeroBetaOnlyDecays) {
  const Case c = test_case("kda.core", "T=40,H=1,state0=random");
  TensorMap in = random_inputs(c);
  fill(in, "beta", 0);
  fill(in, "g", 0);
  const Truth still = compute_truth(c, in, low());
  for (std::size_t i = 0; i < still.outputs.at("state").hi.size(); ++i) {
    EXPECT_EQ(still.outputs.at("state").hi[i], in.at("state0").at(static_cast<std::int64_t>(i)));
    EXPECT_EQ(still.outputs.at("state").lo[i], 0);
  }
  fill(in, "g", -0.25F);
  const Truth decayed = compute_truth(c, in, low());
  const TruthTensor& state = decayed.outputs.at("state");
  const Mpfr512 factor = exp(Mpfr512(-10.0));
  for (std::size_t i = 0; i < state.hi.size(); ++i) {
    const Mpfr512 exact = factor * in.at("state0").at(static_cast<std::int64_t>(i));
    EXPECT_LE(abs(exactly<Mpfr512>({state.hi[i], state.lo[i]}) - exact), abs(exact) * 0x1p-94);
  }
}

TEST(KdaRecurrence, IntegersAreExact) {
  // No decay, integer keys and values: every intermediate is an integer, and |khat| > 1 makes the
  // state grow.
  const Case c = test_case("kda.core", "T=12,H=1,state0=random");
  TensorMap in = random_inputs(c);
  std::mt19937 engine(3);
  for (const char* name : {"qhat", "khat", "v", "state0"})
    for (std::int64_t i = 0; i < in.at(name).size(); ++i)
      element(in, name, i) = static_cast<float>(static_cast<int>(engine() % 3) - 1);
  fill(in, "g", 0);
  fill(in, "beta", 1);
  const Truth truth = compute_truth(c, in, low());
  const auto exact = naive<Mpfr512>(c, in);
  for (const char* name : {"o", "state"}) {
    const TruthTensor& t = truth.outputs.at(name);
    for (std::size_t i = 0; i < t.hi.size(); ++i)
      ASSERT_EQ(exactly<Mpfr512>({t.hi[i], t.lo[i]}), exact.at(name)[i]) << name << " " << i;
  }
}

TEST(KdaRecurrence, AMapAppliedIsTheRecurrence) {
  // state(state0) = M state0 + B, through the stages summary and merge.
  const Case core = test_case("kda.core", "T=50,H=1,state0=random");
  const TensorMap in = random_inputs(core);
  const Truth whole = compute_truth(core, in);
  TensorMap prepared = in;
  prepared.erase("qhat");
  const Truth map = compute_truth(test_case("kda.summary", "T=50,H=1"), prepared);
  const TruthTensor &M = map.outputs.at("M"), &B = map.outputs.at("B");
  for (std::int64_t d = 0; d < 64; ++d)
    for (std::int64_t v = 0; v < 64; ++v) {
      double sum = B.hi[static_cast<std::size_t>(d * 64 + v)];
      for (std::int64_t j = 0; j < 64; ++j)
        sum += M.hi[static_cast<std::size_t>(d * 64 + j)] * in.at("state0").at(j * 64 + v);
      EXPECT_NEAR(whole.outputs.at("state").hi[static_cast<std::size_t>(d * 64 + v)], sum, 1e-13);
    }
}

TEST(ShortConv, StateHoldsTheLastThreeRawInputs) {
  const Case c = test_case("kda.conv", "T=2,H=1");
  const TensorMap in = random_inputs(c);
  const Truth truth = compute_truth(c, in);
  const TruthTensor& state = truth.outputs.at("conv_state");
  const std::int64_t C = c.shape.channels();
  for (std::int64_t ch = 0; ch < C; ++ch) {
    const auto at = static_cast<std::size_t>(ch * 3);
    EXPECT_EQ(state.hi[at], in.at("conv_state0").at(ch * 3 + 2));
    EXPECT_EQ(state.hi[at + 1], in.at("x").at(ch));
    EXPECT_EQ(state.hi[at + 2], in.at("x").at(C + ch));
  }
}

TEST(Truth, AMissingStateIsZeroAndSequencesAreIndependent) {
  const Case packed = test_case("kda.core", "T=50,H=1,cuts=17");
  TensorMap in = random_inputs(packed);
  in.erase("state0");
  const Truth both = compute_truth(packed, in);
  const Case second = test_case("kda.core", "T=33,H=1");
  TensorMap tail;
  for (const auto& [name, t] : in) {
    Tensor part(t.dtype, t.shape);
    const std::int64_t row = t.size() / 50;
    part.shape[0] = 33;
    part.bytes.assign(t.bytes.begin() + 17 * row * 4, t.bytes.end());
    tail[name] = part;
  }
  const Truth alone = compute_truth(second, tail);
  const auto& o = both.outputs.at("o").hi;
  EXPECT_EQ(LargeVector<double>(o.begin() + 17 * 64, o.end()), alone.outputs.at("o").hi);
  const auto& state = both.outputs.at("state").hi;
  EXPECT_EQ(LargeVector<double>(state.begin() + 64 * 64, state.end()),
            alone.outputs.at("state").hi);
}

TEST(Truth, DoesNotDependOnThreads) {
  const Case c = test_case("kda.prefill", "T=100,H=1,HV=3");
  const TensorMap in = random_inputs(c);
  TruthOptions one = low(), many = low();
  one.threads = 1;
  many.threads = 5;
  EXPECT_EQ(compute_truth(c, in, one).outputs.at("o").lo,
            compute_truth(c, in, many).outputs.at("o").lo);
}

TEST(Truth, RejectsInputsThatDoNotFit) {
  const Case c = test_case("kda.core", "T=8,H=1");
  TensorMap in = random_inputs(c);
  in.at("v").shape[0] = 7;
  EXPECT_THROW(compute_truth(c, in), UsageError);
  in.erase("v");
  EXPECT_THROW(compute_truth(c, in), UsageError);
}

}  // namespace
}  // namespace numgate
