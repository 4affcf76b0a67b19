// A shadow on a device against the same shadow on the CPU.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "core/windows.h"
#include "oracles/cuda/shadow_run.h"
#include "oracles/truth.h"

namespace numgate {

inline TensorMap recurrence_inputs(const Case& c) {
  TensorMap in;
  std::mt19937_64 bits(c.seed);
  std::normal_distribution<float> normal;
  for (const auto& spec : stage(c.stage).inputs) {
    Tensor t(Dtype::f32, tensor_shape(spec, c.shape));
    for (std::int64_t i = 0; i < t.size(); ++i) {
      const float x = normal(bits);
      t.as<float>()[i] = spec.name == "g"      ? -std::log1p(std::exp(-x))
                         : spec.name == "beta" ? 1 / (1 + std::exp(x))
                         : spec.name == "qhat" || spec.name == "khat"
                             ? x / std::sqrt(static_cast<float>(c.shape.K))
                             : x;
    }
    in.emplace(spec.name, std::move(t));
  }
  return in;
}

inline std::map<std::string, TensorShadow> shadow_on(team::TeamDevice& device, const Case& c,
                                                     const TensorMap& inputs, const Truth& truth,
                                                     const ShadowOptions& options,
                                                     shadow::SiteSet& used) {
  shadow::Sums sums;
  for (const char* name : {"o", "state", "fold"})
    if (std::string_view(name) != "fold" || c.schedule.kind == ScheduleKind::cp)
      sums.emplace(name, shadow::ErrorSums(c, name, truth, options.draws));
  team::add_draws(device, c, c.plan.declared, inputs, truth, options, ~shadow::SiteSet(), sums,
                  used);
  std::map<std::string, TensorShadow> out;
  for (auto& [name, s] : sums) out.emplace(name, std::move(s).finish());
  return out;
}

// Mode D: every window and draw to `relative`, rows to float's precision. Mode I: another sample of
// the same distribution, so the means over draws of what a draw's windows sum to, each window in
// units of its mean, agree within five standard errors.
inline void expect_same_shadow(const std::map<std::string, TensorShadow>& device,
                               const std::map<std::string, TensorShadow>& cpu, double relative) {
  ASSERT_EQ(device.size(), cpu.size());
  for (const auto& [name, mine] : device) {
    const TensorShadow& other = cpu.at(name);
    ASSERT_EQ(mine.windows.size(), other.windows.size());
    const auto draws = static_cast<std::size_t>(mine.draws);
    std::vector<double> a(draws), b(draws);
    for (std::size_t w = 0; w < mine.windows.size(); ++w) {
      const auto &x = mine.windows[w].squares, &y = other.windows[w].squares;
      const double mean = std::accumulate(y[0].begin(), y[0].end(), 0.0);
      for (std::size_t d = 0; d < draws; ++d) {
        EXPECT_NEAR(x[1][d], y[1][d], relative * y[1][d])
            << name << " window " << w << " draw " << d;
        a[d] += x[0][d] / mean;
        b[d] += y[0][d] / mean;
      }
    }
    const auto moments = [&](const std::vector<double>& v) {
      double mean = 0, variance = 0;
      for (const double x : v) mean += x / static_cast<double>(draws);
      for (const double x : v) variance += (x - mean) * (x - mean) / static_cast<double>(draws - 1);
      return std::pair(mean, variance / static_cast<double>(draws));
    };
    const auto [mean_a, error_a] = moments(a);
    const auto [mean_b, error_b] = moments(b);
    EXPECT_NEAR(mean_a, mean_b, 5 * std::sqrt(error_a + error_b)) << name;
    EXPECT_LT(std::sqrt(error_a + error_b), 0.5 * mean_b) << name << ": too few draws to tell";
    for (std::size_t r = 0; r < mine.row_max[1].size(); ++r)
      EXPECT_NEAR(mine.row_max[1][r], other.row_max[1][r], (1e-6 + relative) * other.row_max[1][r])
          << name << " row " << r;
    if (!mine.row_max[0].empty()) {
      EXPECT_GT(mine.row_null, other.row_null / 2) << name;
      EXPECT_LT(mine.row_null, other.row_null * 2) << name;
    }
  }
}

}  // namespace numgate
