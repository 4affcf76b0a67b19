// A segment's map, by both algorithms of its chain: against the emulated form to the bit, and
// against the segment itself.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "oracles/shadow.h"
#include "partitioning/run.h"
#include "property_tests/families.h"

namespace numgate {
namespace {

const std::unique_ptr<kernels::Backend> backend = kernels::make_cpu_backend();

// Gates of 0 or log2 = -1: every decay is a power of two, so that the kernels' exp2 and the
// emulation's, both correctly rounded there, agree, and everything else is specified to the bit.
TensorMap binary_decays(const Case& c) {
  TensorMap in = generate(c);
  std::mt19937_64 bits(c.seed);
  Tensor& g = in.at("g");
  for (std::int64_t i = 0; i < g.size(); ++i)
    g.as<float>()[i] = bits() % 16 == 0 ? -0.693147180559945f : 0.0f;
  return in;
}

TEST(SegmentMap, EqualsTheEmulatedForm) {
  for (const char* plan :
       {"reference", "production", "tf32", "tf32x3", "reference+summary.chain=diag_tf32x3",
        "production+w.store=ieee+kg.store=ieee"})
    for (const char* shape : {"T=150", "T=64,K=128"}) {
      const Case c = parse_case(std::string("kda.summary/sequential/") + plan + "/gaussian/" +
                                shape + "/seed=5");
      const TensorMap in = binary_decays(c);
      const TensorMap kernel = run_case(c, in, *backend).outputs;
      const TensorMap form = compute_emulation(c, c.plan.ran, in);
      for (const char* name : {"M", "B"}) {
        std::int64_t differing = 0;
        double norm = 0;
        for (std::int64_t i = 0; i < kernel.at(name).size(); ++i) {
          differing += kernel.at(name).at(i) != form.at(name).at(i);
          norm += std::abs(form.at(name).at(i));
        }
        EXPECT_EQ(differing, 0) << c.id() << " " << name;
        EXPECT_GT(norm, 1) << c.id() << " " << name;
      }
    }
}

// M S + B is the state that the segment leaves when it starts from S.
TEST(SegmentMap, AppliedToAStateIsTheSegment) {
  for (const auto& [plan, limit] :
       std::vector<std::pair<std::string, double>>{{"reference", 2e-6},
                                                   {"reference+summary.chain=diag_tf32x3", 1e-6},
                                                   {"reference+summary.chain=tf32", 1e-2},
                                                   {"production", 1e-2}}) {
    const std::string rest = "/" + plan + "/needle/T=300,state0=random/seed=6";
    const Case core = parse_case("kda.core/sequential" + rest);
    const TensorMap in = generate(core);
    const Tensor state = run_case(core, in, *backend).outputs.at("state");
    const TensorMap map =
        run_case(parse_case("kda.summary/sequential" + rest), in, *backend).outputs;
    const std::int64_t K = core.shape.K, V = core.shape.V;
    double error = 0, norm = 0;
    for (std::int64_t i = 0; i < K; ++i)
      for (std::int64_t j = 0; j < V; ++j) {
        double sum = map.at("B").at(i * V + j);
        for (std::int64_t k = 0; k < K; ++k)
          sum += map.at("M").at(i * K + k) * in.at("state0").at(k * V + j);
        error += std::pow(sum - state.at(i * V + j), 2), norm += std::pow(state.at(i * V + j), 2);
      }
    EXPECT_LT(std::sqrt(error / norm), limit) << plan;
    EXPECT_GT(norm, 0) << plan;
  }
}

}  // namespace
}  // namespace numgate
