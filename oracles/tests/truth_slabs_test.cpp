// The recurrence as the GPU reads it: rows shared by a team, tokens in slabs, audits on threads.
#include <gtest/gtest.h>

#include "core/errors.h"
#include "oracles/task_queue.h"
#include "oracles/tests/truth_reference.h"
#include "oracles/truth_recurrence.h"

namespace numgate {
namespace {

// A team of eight in one pack: lane l of element j is row 8 j + l.
struct PackTeam {
  static constexpr int size = kLanes;
  static std::int64_t count(std::int64_t n) { return n / kLanes; }
  static std::int64_t element(std::int64_t j) { return j; }
  static Pack exchange(Pack x, int mask) {
    Pack y;
    for (int l = 0; l < kLanes; ++l) y[l] = x[l ^ mask];
    return y;
  }
  static Accumulator<DDPack> exchange(const Accumulator<DDPack>& a, int mask) {
    return {exchange(a.high, mask), exchange(a.middle, mask), exchange(a.low, mask)};
  }
};

std::vector<DDPack> packed(const DD* x, std::int64_t n) {
  std::vector<DDPack> packs(static_cast<std::size_t>(n / kLanes));
  for (std::int64_t i = 0; i < n; ++i) {
    packs[static_cast<std::size_t>(i / kLanes)].hi[i % kLanes] = x[i].hi;
    packs[static_cast<std::size_t>(i / kLanes)].lo[i % kLanes] = x[i].lo;
  }
  return packs;
}

TEST(Team, EightLanesReadTheRecurrenceAsOneDoes) {
  const Case c = test_case("kda.prefill", "T=64,H=1,K=128");
  const TensorMap inputs = random_inputs(c);
  const std::int64_t K = c.shape.K, T = c.shape.T, column = 9;
  std::vector<Mpfr512> exact(static_cast<std::size_t>(K));
  std::vector<DD> alone(exact.size(), DD(0.0));
  std::vector<DDPack> team(exact.size() / kLanes, DDPack(0.0));
  OperandTile tile(K, kLanes);
  for (std::int64_t t = 0; t < T; ++t) {
    tile.fill({c.shape, inputs, true}, 0, t, 0, 1);
    const double v = inputs.at("v").at(t * c.shape.V + column);
    const DD one = definition::kda_step(K, tile.alpha.data(), tile.khat.data(), tile.qhat.data(),
                                        tile.beta[0], DD(v), alone.data());
    const auto alpha = packed(tile.alpha.data(), K), khat = packed(tile.khat.data(), K),
               qhat = packed(tile.qhat.data(), K);
    const DDPack shared =
        definition::kda_step(PackTeam{}, K, alpha.data(), khat.data(), qhat.data(),
                             DDPack(tile.beta[0]), DDPack(v), team.data());
    std::vector<Mpfr512> a, k, q;
    for (std::size_t d = 0; d < exact.size(); ++d) {
      a.push_back(exactly<Mpfr512>(tile.alpha[d]));
      k.push_back(exactly<Mpfr512>(tile.khat[d]));
      q.push_back(exactly<Mpfr512>(tile.qhat[d]));
    }
    const Mpfr512 truth = definition::kda_step(
        K, a.data(), k.data(), q.data(), exactly<Mpfr512>(tile.beta[0]), Mpfr512(v), exact.data());
    for (int l = 0; l < kLanes; ++l) {  // all lanes hold the same sum
      ASSERT_EQ(shared.hi[l], shared.hi[0]);
      ASSERT_EQ(shared.lo[l], shared.lo[0]);
    }
    const auto error = [&](const DD& x) {
      return std::abs(to_double(Mpfr512(exactly<Mpfr512>(x) - truth)));
    };
    ASSERT_LE(error({shared.hi[0], shared.lo[0]}), 0x1p-95) << t;
    ASSERT_LE(error(one), 0x1p-95) << t;
  }
}

TEST(Team, ASumOfAccumulatorsKeepsWhatCancels) {
  // 1 + 2^-60 + 2^-120 - 1 - 2^-60 over two lanes: the third word survives.
  Accumulator<DD> a, b;
  add_product(a, DD(1.0), DD(1.0, 0x1p-60));
  add_product(a, DD(0x1p-60), DD(0x1p-60));
  add_product(b, DD(-1.0), DD(1.0, 0x1p-60));
  EXPECT_EQ((a + b).value(), DD(0x1p-120));
  EXPECT_EQ((b + a).value(), DD(0x1p-120));
}

// What a stream hands over, in one piece.
struct Streamed {
  LargeVector<double> hi, lo, state;
  std::vector<double> radius;
  AuditResult audit;
};

Case streamed_case() { return test_case("kda.prefill", "T=90,H=2,HV=4,state0=random,cuts=37"); }

// Every slab's inputs made anew and forgotten.
Streamed stream(
    const Case& c, const TensorMap& inputs,
    const std::function<std::unique_ptr<RecurrenceEngine>(const RecurrenceStage&)>& make) {
  const Shape& s = c.shape;
  RecurrenceRun run{.stage = {s, true, true, true, s.V},
                    .sequences = s.sequence_segments(),
                    .inputs = [&](Segment tokens) {
                      auto slab = std::make_shared<TensorMap>();
                      for (const auto& [name, x] : inputs) {
                        if (name == "state0") continue;
                        Tensor part = x;
                        if (x.shape[0] == s.T) {
                          const auto row = static_cast<std::ptrdiff_t>(
                              x.bytes.size() / static_cast<std::size_t>(s.T));
                          part.shape[0] = tokens.size();
                          part.bytes.assign(x.bytes.begin() + tokens.begin * row,
                                            x.bytes.begin() + tokens.end * row);
                        }
                        slab->emplace(name, std::move(part));
                      }
                      return InputSlab{slab, tokens.begin};
                    }};
  run.state0 = [&](std::int64_t n, std::int64_t h, std::int64_t d, std::int64_t column) {
    return inputs.at("state0").at(((n * s.HV + h) * s.K + d) * s.V + column);
  };
  Streamed out;
  run.output = [&](RecurrenceEngine& popped, Segment tokens) {
    const auto at = out.hi.size(), rows = static_cast<std::size_t>(tokens.size() * s.HV);
    out.hi.resize(at + rows * static_cast<std::size_t>(s.V));
    out.lo.resize(out.hi.size());
    out.radius.resize(out.radius.size() + rows);
    popped.outputs(out.hi.data() + at, out.lo.data() + at,
                   out.radius.data() + out.radius.size() - rows);
  };
  run.state = [&](std::int64_t, const FinalState& last) {
    out.state.insert(out.state.end(), last.hi.begin(), last.hi.end());
  };
  run_recurrence(*make(run.stage), run, {}, nullptr, out.audit);
  return out;
}

Truth whole_truth(const Case& c, const TensorMap& inputs) {
  TruthOptions options;
  options.keep_low = true;
  return compute_truth(c, inputs, options);
}

TEST(Slabs, AStreamOfInputsGivesTheWholesTruth) {
  const Case c = streamed_case();
  const TensorMap inputs = random_inputs(c);
  const Truth whole = whole_truth(c, inputs);
  const Streamed streamed =
      stream(c, inputs, [](const RecurrenceStage& stage) { return make_cpu_engine(stage, 1); });
  EXPECT_EQ(streamed.hi, whole.outputs.at("o").hi);
  EXPECT_EQ(streamed.lo, whole.outputs.at("o").lo);
  EXPECT_EQ(streamed.radius, whole.outputs.at("o").radius);
  EXPECT_EQ(streamed.state, whole.outputs.at("state").hi);
  EXPECT_EQ(streamed.audit.columns, 4);
  EXPECT_LT(streamed.audit.worst_log2, -95);
  EXPECT_EQ(streamed.audit.worst_log2, whole.audit.worst_log2);
}

// Slabs of 32 tokens, so that states and bounds go from slab to slab.
TEST(Slabs, OnCudaToo) {
  const Case c = streamed_case();
  const TensorMap inputs = random_inputs(c);
  const TruthTensor o = whole_truth(c, inputs).outputs.at("o");
  Streamed streamed;
  try {
    streamed =
        stream(c, inputs, [](const RecurrenceStage& stage) { return make_cuda_engine(stage, 32); });
  } catch (const UsageError& e) {
    GTEST_SKIP() << e.what();
  }
  ASSERT_EQ(streamed.hi.size(), o.hi.size());
  for (std::size_t i = 0; i < o.hi.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(c.shape.V);
    ASSERT_NEAR(streamed.radius[row], o.radius[row], 1e-12 * o.radius[row]) << row;
    ASSERT_LE(std::abs((DD(streamed.hi[i], streamed.lo[i]) - DD(o.hi[i], o.lo[i])).hi),
              o.radius[row])
        << i;
  }
  EXPECT_LT(streamed.audit.worst_log2, -95);
}

// The audit, behind the walk, finds one value of v changed in the last slab.
TEST(Slabs, AnAuditOnItsThreadFailsTheRun) {
  const Case c = test_case("kda.prefill", "T=96,H=1");
  const auto first = std::make_shared<TensorMap>(random_inputs(c));
  const auto last = std::make_shared<TensorMap>(*first);
  RecurrenceRun run{.stage = {c.shape, true, true, true, c.shape.V},
                    .sequences = {{0, 96}},
                    .inputs = [&](Segment tokens) {
                      return InputSlab{tokens.end == 96 ? last : first, 0};
                    }};
  run.output = [&](RecurrenceEngine&, Segment tokens) {  // between the engine and the audit
    if (tokens.end == 96) last->at("v").as<float>()[95 * c.shape.V + c.shape.V / 2] *= 1 + 0x1p-20F;
  };
  const auto engine = make_cpu_engine(run.stage, 1);
  AuditResult audit;
  EXPECT_THROW(run_recurrence(*engine, run, {}, nullptr, audit), OracleError);
}

TEST(TaskQueue, RunsInOrderAndRethrows) {
  std::vector<int> seen;
  {
    TaskQueue queue(2);
    for (int i = 0; i < 100; ++i) queue.push([&seen, i] { seen.push_back(i); });
    queue.wait();
  }
  ASSERT_EQ(seen.size(), 100U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  TaskQueue failing(2);
  failing.push([] { throw OracleError("planted"); });
  EXPECT_THROW(
      {
        for (;;) failing.push([] {});
      },
      OracleError);
  EXPECT_THROW(failing.wait(), OracleError);
}

}  // namespace
}  // namespace numgate
