// What the formats of a context-parallel merge cost in accuracy: the kernels' segment maps and
// their fold against truth, by the format of summary.chain and merge.dot.
//
//   merge_accuracy BACKEND PLAN FAMILY RANKS TOKENS...
//   merge_accuracy cpu reference needle 8 4096 16384 65536
//
// Of the ranks' maps the worst is shown. `error` is the relative Frobenius error, `scale` the
// projection <seen, truth> / <truth, truth> less 1: a bias, which grows with the number of chunks.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cli/machine.h"
#include "core/errors.h"
#include "oracles/truth.h"
#include "partitioning/run.h"
#include "partitioning/shards.h"
#include "property_tests/families.h"

namespace numgate {
namespace {

struct Difference {
  double error, scale;
};

Difference compare(const Tensor& seen, const TruthTensor& truth) {
  double error = 0, product = 0, norm = 0;
  for (std::int64_t i = 0; i < seen.size(); ++i) {
    const double t = truth.hi[static_cast<std::size_t>(i)], x = seen.at(i);
    error += (x - t) * (x - t), product += x * t, norm += t * t;
  }
  return {std::sqrt(error / norm), (product - norm) / norm};
}

void study(const std::string& plan, const std::string& family, int ranks, std::int64_t T,
           kernels::Backend& backend) {
  const auto parsed = [&](const std::string& stage, const std::string& variant, std::int64_t n) {
    return parse_case(
        fmt::format("{}/sequential/{}{}/{}/T={},K=128/seed=42", stage, plan, variant, family, n));
  };
  const Case whole = parsed("kda.core", "", T);
  const TensorMap inputs = generate(whole);
  const auto segments_of = segments(parse_schedule(fmt::format("cp{}", ranks)), T);
  std::vector<TensorMap> shares;
  std::vector<TruthTensor> maps;
  for (const Segment& s : segments_of) {
    TensorMap& share = shares.emplace_back();
    for (const auto& spec : stage("kda.summary").inputs)
      share.emplace(spec.name, slice(inputs.at(std::string(spec.name)), 0, s.begin, s.end));
    Case rank = parsed("kda.summary", "", s.size());
    maps.push_back(compute_truth(rank, share).outputs.at("M"));
  }
  const TruthTensor state = compute_truth(whole, inputs).outputs.at("state");

  for (const char* chain : {"tf32", "tf32x3", "ieee", "diag_tf32x3"}) {
    TensorMap summaries{{"state0", Tensor(Dtype::f32, {1, whole.shape.K, whole.shape.V})}};
    Difference worst{};
    for (std::size_t r = 0; r < shares.size(); ++r) {
      const auto rank = static_cast<std::int64_t>(r);
      const Case c =
          parsed("kda.summary", fmt::format("+summary.chain={}", chain), segments_of[r].size());
      const TensorMap map = run_case(c, shares[r], backend).outputs;
      for (const auto& [name, values] : map) {
        auto shape = values.shape;
        shape.insert(shape.begin(), ranks);
        Tensor& all = summaries.try_emplace(name, values.dtype, shape).first->second;
        std::memcpy(all.bytes.data() + static_cast<std::size_t>(rank) * values.bytes.size(),
                    values.bytes.data(), values.bytes.size());
      }
      const Difference d = compare(map.at("M"), maps[r]);
      if (d.error > worst.error) worst = d;
    }
    fmt::print("{:<10} {:<8} {:>8} {:<12} M error {:.2e} scale {:+.1e}", plan, family, T, chain,
               worst.error, worst.scale);
    for (const char* merge : {"tf32", "tf32x3", "ieee"}) {
      const Case c = parsed("kda.merge", fmt::format("+merge.dot={}", merge), ranks);
      const Difference d = compare(run_case(c, summaries, backend).outputs.at("state"), state);
      fmt::print(" | {} fold {:.2e} scale {:+.1e}", merge, d.error, d.scale);
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace numgate

int main(int argc, char** argv) {
  if (argc < 6) {
    fmt::print(stderr, "usage: merge_accuracy BACKEND PLAN FAMILY RANKS TOKENS...\n");
    return 1;
  }
  try {
    const auto backend = numgate::make_backend(argv[1]);
    for (int i = 5; i < argc; ++i)
      numgate::study(argv[2], argv[3], std::atoi(argv[4]), std::atoll(argv[i]), *backend);
  } catch (const numgate::UsageError& e) {
    fmt::print(stderr, "merge_accuracy: {}\n", e.what());
    return 1;
  }
}
