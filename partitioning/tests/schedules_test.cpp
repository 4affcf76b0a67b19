// Every schedule of every stage against the truth and against its control.
#include <gtest/gtest.h>

#include <cmath>

#include "oracles/truth.h"
#include "partitioning/communicator.h"
#include "partitioning/device_buffer.h"
#include "partitioning/device_memory.h"
#include "partitioning/run.h"
#include "property_tests/families.h"

namespace numgate {
namespace {

const std::unique_ptr<kernels::Backend> backend = kernels::make_cpu_backend();

Observation run(const std::string& id, const RunOptions& options = {}) {
  const Case c = parse_case(id);
  return run_case(c, generate(c), *backend, options);
}

double relative_error(const Tensor& seen, const TruthTensor& truth) {
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < seen.size(); ++i) {
    const double t = truth.hi[static_cast<std::size_t>(i)];
    error += (seen.at(i) - t) * (seen.at(i) - t), norm += t * t;
  }
  return std::sqrt(error / norm);
}

struct Expectation {
  const char* id;
  double limit;  // relative error: a few fp32 or bf16 ulps of an accumulated sum
};

class AgainstTruth : public testing::TestWithParam<Expectation> {};

TEST_P(AgainstTruth, EveryOutputIsClose) {
  const Case c = parse_case(GetParam().id);
  const TensorMap inputs = generate(c);
  const Truth truth = compute_truth(c, inputs);
  const Observation seen = run_case(c, inputs, *backend);
  EXPECT_TRUE(seen.failures.empty()) << seen.failures.front();
  ASSERT_FALSE(seen.outputs.empty());
  for (const auto& [name, values] : seen.outputs)
    EXPECT_LT(relative_error(values, truth.outputs.at(name == "fold" ? "state" : name)),
              GetParam().limit)
        << name;
}

class HeadGroups : public testing::TestWithParam<const char*> {};

TEST_P(HeadGroups, ChangeNoBit) {
  RunOptions grouped;
  grouped.head_groups = 2;
  const Observation whole = run(GetParam()), parts = run(GetParam(), grouped);
  EXPECT_EQ(parts.failures, whole.failures);
  ASSERT_EQ(parts.outputs.size(), whole.outputs.size());
  for (const auto& [name, values] : whole.outputs) {
    EXPECT_EQ(parts.outputs.at(name).shape, values.shape) << name;
    EXPECT_EQ(parts.outputs.at(name).bytes, values.bytes) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Stages, HeadGroups,
    testing::Values("kda.prefill/cp3/production/gaussian/T=150,H=2,HV=4,state0=random/seed=1",
                    "kda.prefill/varlen/reference/gaussian/T=90,H=2,cuts=33/seed=1",
                    "kda.prefill/replay@8/production/gaussian/T=70,H=4,in=f32/seed=1",
                    "kda.conv/cp3/reference/gaussian/T=23,H=2,state0=random/seed=1",
                    "kda.merge/sequential/reference/gaussian/T=5,H=2,state0=random/seed=1",
                    "kda.out_norm/sequential/reference/gaussian/T=33,H=2/seed=1"));

// By hand, from the shapes of core/stage.h and kernels/kda/kda.h.
TEST(DeviceMemory, IsTheSumOfWhatIsAllocated) {
  // q, k, v and the gate in bf16, beta, A_log, dt_bias and state0; o, its cast and the state; one
  // chunk of operands u, w, kg, qg [64 128], Aqk [64 64] in bf16, gamma [128] in fp32.
  const std::size_t inputs = 4 * 64 * 128 * 2 + 64 * 2 + 4 + 128 * 4 + 65536;
  const std::size_t outputs = 64 * 128 * (4 + 2) + 65536;
  const std::size_t chunk = 64 * (4 * 128 + 64) * 2 + 128 * 4;
  const auto bytes = [](const char* id) { return device_bytes(parse_case(id)); };
  EXPECT_EQ(bytes("kda.prefill/sequential/production/gaussian/T=64,K=128/seed=1"),
            inputs + outputs + chunk);
  // Two ranks on one device: their chunks, own and gathered maps and states, two states each, fold.
  EXPECT_EQ(bytes("kda.prefill/cp2/production/gaussian/T=64,K=128/seed=1"),
            inputs + outputs + 2 * chunk + 65536 * (2 * 3 * 2 + 2 * 2 + 1));
  // 64 heads of a million tokens: a sequence is cut into slabs, the ranks of cp share the device.
  const double gib = 1 << 30;
  EXPECT_NEAR(static_cast<double>(
                  bytes("kda.prefill/sequential/production/needle/T=1048576,H=64,K=128/seed=1")) /
                  gib,
              113, 1);
  EXPECT_NEAR(
      static_cast<double>(bytes("kda.prefill/cp8/production/needle/T=1048576,H=64,K=128/seed=1")) /
          gib,
      185, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, AgainstTruth,
    testing::Values(
        Expectation{"kda.prefill/sequential/reference/gaussian/"
                    "T=200,H=1,HV=2,K=64,V=128,state0=random/seed=1",
                    1e-5},
        Expectation{"kda.prefill/sequential/reference/gaussian/T=70,K=128,in=f32,gate=plain/seed=2",
                    1e-5},
        Expectation{"kda.prefill/sequential/production/gaussian/T=200,H=2/seed=1", 1e-2},
        Expectation{"kda.prefill/chunked@37/reference/gaussian/T=200,state0=random/seed=1", 1e-5},
        Expectation{"kda.prefill/decode/reference/gaussian/T=90,H=1,HV=2,state0=random/seed=1",
                    1e-5},
        Expectation{"kda.prefill/replay@7/reference/gaussian/T=90,H=1,HV=2,state0=random/seed=1",
                    1e-5},
        Expectation{
            "kda.prefill/cp3/reference/needle/T=200,H=1,HV=2,K=64,V=128,state0=random/seed=1",
            1e-5},
        Expectation{"kda.prefill/cp8/production/needle/T=200/seed=1", 1e-2},
        Expectation{"kda.prefill/cp8/reference/gaussian/T=5/seed=1", 1e-5},
        Expectation{"kda.prefill/tp2/reference/gaussian/T=70,H=2,HV=4,state0=random/seed=1", 1e-5},
        Expectation{
            "kda.prefill/varlen/reference/gaussian/T=200,HV=2,state0=random,cuts=1+65+130/seed=1",
            1e-5},
        Expectation{"kda.prefill/resume@70/reference/gaussian/T=200/seed=1", 1e-5},
        Expectation{"kda.core/cp3/reference/gaussian/T=100/seed=1", 1e-5},
        Expectation{"kda.summary/sequential/reference/gaussian/T=100/seed=1", 1e-5},
        Expectation{
            "kda.summary/sequential/reference+summary.chain=diag_tf32x3/needle/T=500,K=128/seed=1",
            1e-5},
        Expectation{"kda.merge/sequential/reference/gaussian/T=5,state0=random/seed=1", 1e-5},
        Expectation{"kda.l2norm/sequential/reference/gaussian/T=33,H=3/seed=1", 1e-6},
        Expectation{"kda.gate/sequential/reference/gaussian/T=33,H=3/seed=1", 1e-6},
        Expectation{"kda.beta/sequential/reference/gaussian/T=33,H=3/seed=1", 1e-6},
        Expectation{"kda.conv/cp8/reference/gaussian/T=11,state0=random/seed=1", 1e-6},
        Expectation{"kda.conv/varlen/reference/gaussian/T=64,state0=random,cuts=1+3+9/seed=1",
                    1e-6},
        Expectation{"kda.conv/tp2/reference/gaussian/T=9,H=2,state0=random/seed=1", 1e-6},
        Expectation{"kda.out_norm/sequential/reference/gaussian/T=33,H=3/seed=1", 1e-6}),
    [](const auto& info) {
      std::string name = info.param.id;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name + "_" + std::to_string(info.index);
    });

// Class E: the schedule's bits are its control's.
TEST(Equivalence, ClassEGivesTheSameBits) {
  for (const char* plan : {"reference", "production"})
    for (const auto& [schedule, shape] : std::vector<std::pair<std::string, std::string>>{
             {"tp2", "T=130,H=2,HV=4,state0=random"},
             {"varlen", "T=130,HV=2,state0=random,cuts=1+64+81"},
             {"chunked@64", "T=200,HV=2,state0=random"},
             {"resume@128", "T=200,HV=2"}}) {
      const auto id = [&](const std::string& s) {
        return "kda.prefill/" + s + "/" + plan + "/gaussian/" + shape + "/seed=3";
      };
      const Observation a = run(id(schedule)), b = run(id("sequential"));
      for (const auto& [name, values] : a.outputs)
        EXPECT_EQ(values.bytes, b.outputs.at(name).bytes) << id(schedule) << " " << name;
    }
}

// A run leaves nothing to chance: not to what memory held, not to the order of threads.
TEST(Health, PoisonAndThreadOrderChangeNoBit) {
  for (const char* schedule : {"sequential", "cp3", "decode", "replay@5", "varlen", "resume@33"}) {
    const std::string id =
        std::string("kda.prefill/") + schedule + "/production/gaussian/T=100,HV=2/seed=4";
    const Observation a = run(id), b = run(id, {kOtherPoison, 99});
    for (const auto& [name, values] : a.outputs)
      EXPECT_EQ(values.bytes, b.outputs.at(name).bytes) << id << " " << name;
  }
}

TEST(Communicator, GathersInRankOrderAndRethrows) {
  std::vector<std::int32_t> seen(5 * 5, -1);
  run_in_process(5, *backend, [&](Communicator& c) {
    std::int32_t own = 10 * c.rank();
    c.all_gather(&own, seen.data() + 5 * c.rank(), sizeof own);
    own = -1;
  });
  for (int r = 0; r < 5; ++r)
    for (int i = 0; i < 5; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(5 * r + i)], 10 * i);
  EXPECT_THROW(run_in_process(3, *backend,
                              [](Communicator& c) {
                                if (c.rank() == 1) throw std::runtime_error("rank 1");
                                char byte = 0, all[3];
                                c.all_gather(&byte, all, 1);
                              }),
               std::runtime_error);
}

}  // namespace
}  // namespace numgate
