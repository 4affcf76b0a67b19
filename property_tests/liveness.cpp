#include <algorithm>
#include <cmath>
#include <cstdio>

#include "property_tests/families.h"
#include "property_tests/recipes.h"

namespace numgate {
namespace {

using Index = std::int64_t;

constexpr double kLiveRetention = 0.1;
constexpr Index kSampledTokens = 4096;

// The tokens over which content has to survive.
Segment persistence_window(const Case& c) {
  const auto longest = [](const std::vector<Segment>& s) {  // the last of the longest
    return *std::max_element(s.begin(), s.end(), [](const Segment& a, const Segment& b) {
      return a.size() <= b.size();
    });
  };
  if (c.schedule.kind == ScheduleKind::cp && c.schedule.parameter > 1)
    return longest(segments(c.schedule, c.shape.T));
  const Segment s = longest(c.shape.sequence_segments());
  return {s.begin + s.size() / 4, s.end};
}

// log(alpha (1 - beta khat^2)), what one token leaves of channel `i` to first order.
class TokenLoss {
 public:
  TokenLoss(const Case& c, const TensorMap& in) : c_(c), in_(in), raw_(in.contains("g_raw")) {}

  void add(Index t, Index hv, double weight, std::vector<double>& loss) const {
    const Shape& s = c_.shape;
    const Index gated = t * s.HV + hv, keyed = t * s.H + hv / (s.HV / s.H);
    const Tensor& keys = in_.at(raw_ ? "k" : "khat");
    double squares = raw_ ? 1e-6 : 1;
    if (raw_)
      for (Index i = 0; i < s.K; ++i)
        squares += keys.at(keyed * s.K + i) * keys.at(keyed * s.K + i);
    const double beta =
        raw_ ? portable::sigmoid(in_.at("beta_raw").at(gated)) : in_.at("beta").at(gated);
    for (Index i = 0; i < s.K; ++i) {
      const double k = keys.at(keyed * s.K + i);
      const double kept = std::max(1 - beta * k * k / squares, 0.0);
      loss[static_cast<std::size_t>(i)] += weight * (g(gated, hv, i) + std::log(kept));
    }
  }

 private:
  double g(Index gated, Index hv, Index i) const {
    const Index K = c_.shape.K;
    if (!raw_) return in_.at("g").at(gated * K + i);
    return gate_value(c_.shape.gate, std::exp(in_.at("A_log").at(hv)),
                      in_.at("g_raw").at(gated * K + i) + in_.at("dt_bias").at(hv * K + i));
  }

  const Case& c_;
  const TensorMap& in_;
  const bool raw_;
};

// Of the worst head's best channel, from at most 4096 evenly spaced tokens of the window.
double retention(const Case& c, const TensorMap& in, Segment window) {
  const Index K = c.shape.K;
  const Index stride = (window.size() + kSampledTokens - 1) / kSampledTokens;
  double worst = 1;
#pragma omp parallel for reduction(min : worst)
  for (Index hv = 0; hv < c.shape.HV; ++hv) {
    std::vector<double> loss(static_cast<std::size_t>(K));
    for (Index t = window.begin; t < window.end; t += stride) {
      const auto weight = static_cast<double>(std::min(stride, window.end - t));
      if (c.stage != "kda.merge") {
        TokenLoss(c, in).add(t, hv, weight, loss);
        continue;
      }
      for (Index i = 0; i < K; ++i)  // a summary's own diagonal
        loss[static_cast<std::size_t>(i)] +=
            weight * std::log(std::fabs(in.at("M").at(((t * c.shape.HV + hv) * K + i) * K + i)));
    }
    worst = std::min(worst, std::exp(*std::max_element(loss.begin(), loss.end())));
  }
  return worst;
}

std::string text(double x) {
  char out[32];
  std::snprintf(out, sizeof out, "%.3g", x);
  return out;
}

}  // namespace

Liveness liveness(const Case& c, const TensorMap& inputs) {
  const bool recurrent = inputs.contains("state0") || c.stage == "kda.summary";
  if (!recurrent) return {true, "elementwise stage: nothing to forget"};
  if (c.family == "exact_integers")
    return {true, "every intermediate value is exact: any wrong bit is a fault"};
  if (c.family == "zero_beta") {
    if (c.stage == "kda.summary") return {true, "M must be the identity and B zero"};
    if (c.shape.state0 == State0::zero)
      return {false, "state0 is zero, so the state would be zero in any case"};
    return {true, "the state must equal state0"};
  }
  if (!family(c.family).persistent) return {true, "the family does not rely on persistence"};
  if (c.family == "needle" && c.stage != "kda.merge") {
    Index burst = 0;
    for (const auto& s : c.shape.sequence_segments()) burst = std::max(burst, s.size() / 4);
    if (burst == 0) return {false, "no sequence has the 4 tokens that the early content takes"};
  }
  const Segment window = persistence_window(c);
  const double kept = retention(c, inputs, window);
  const std::string what = "over tokens [" + std::to_string(window.begin) + ", " +
                           std::to_string(window.end) + ") the state keeps " + text(kept) +
                           " of its best channel";
  if (kept > kLiveRetention) return {true, what};
  return {false,
          what + ", not " + text(kLiveRetention) + ": it forgets what the family is to expose"};
}

}  // namespace numgate
