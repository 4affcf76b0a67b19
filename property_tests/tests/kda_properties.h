// What the property tests of the KDA stages share: runs, comparisons, and drawn cases whose
// failures are kept.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <functional>
#include <optional>

#include "partitioning/run.h"
#include "property_tests/counterexamples.h"
#include "property_tests/families.h"
#include "property_tests/generators.h"
#include "property_tests/random_stream.h"

namespace numgate {

inline constexpr const char* kCounterexamples =
    NUMGATE_SOURCE_DIR "/property_tests/counterexamples";

inline kernels::Backend& cpu() {
  static const auto backend = kernels::make_cpu_backend();
  return *backend;
}

inline TensorMap run(const Case& c, const TensorMap& inputs, const RunOptions& options = {}) {
  return run_case(c, inputs, cpu(), options).outputs;
}

// x * factor + y, element by element; the caller chooses values for which it is exact.
inline Tensor combine(const Tensor& x, double factor, const Tensor* y = nullptr) {
  Tensor out(x.dtype, x.shape);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const auto value = static_cast<float>(x.at(i) * factor + (y ? y->at(i) : 0));
    if (x.dtype == Dtype::f32)
      out.as<float>()[i] = value;
    else
      out.as<std::uint16_t>()[i] =
          static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  }
  return out;
}

// What violates a claim about a case: one sentence, empty where the claim holds.
using Violation = std::string;

// Checks a claim on `count` drawn cases of `size`; the smallest that violates it is stored. The
// draws follow from the claim's name, the same in every run; RC_PARAMS="seed=7 max_success=1000"
// gives others.
inline void check_cases(std::string_view name, int count, std::function<bool(const Case&)> size,
                        std::function<Violation(const Case&)> claim) {
  const auto cases = rc::gen::suchThat(any_case(), std::move(size));
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (!std::getenv("RC_PARAMS")) params.seed = hash_of(name), params.maxSuccess = count;
  std::optional<Case> smallest;  // a shrunk case replaces the last one only where it fails, too
  Violation why;
  const auto result = rc::detail::checkTestable(
      [&] {
        const Case c = *cases;
        const Violation violation = claim(c);
        if (violation.empty()) return;
        smallest = c;
        why = violation;
        RC_FAIL(violation);
      },
      rc::detail::TestMetadata(), params);
  if (smallest) save_counterexample(kCounterexamples, *smallest, why);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << text.str();
}

}  // namespace numgate
