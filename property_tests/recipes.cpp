#include "property_tests/recipes.h"

#include <algorithm>
#include <map>

namespace numgate {
namespace {

namespace pm = portable;
using Index = std::int64_t;

constexpr double kLowerBound = 5;  // of the bounded gate

PerChannel all_channels(double x) {
  return [x](const Draw&, Index, Index) { return x; };
}

// Values from low to high, equal steps in the logarithm, over the channels in an order that each
// head shuffles.
PerChannel spread(double low, double high) {
  return [low, high](const Draw& d, Index head, Index channel) {
    const auto key = [&](Index i) { return std::pair(d.stream.bits(d.index(0, head, i)), i); };
    Index rank = 0;
    for (Index i = 0; i < d.width; ++i) rank += key(i) < key(channel);
    const double step = static_cast<double>(rank) / static_cast<double>(d.width - 1);
    return pm::exp(pm::log(low) + step * (pm::log(high) - pm::log(low)));
  };
}

Row constant_row(double x) {
  return [x](const Draw& d, Index, Index, double* out) { std::fill_n(out, d.width, x); };
}

Row normal_row_of(double mean, double deviation) {
  return [=](const Draw& d, Index t, Index head, double* out) {
    normal_row(d, t, head, out);
    for (Index i = 0; i < d.width; ++i) out[i] = mean + deviation * out[i];
  };
}

// The first quarter of a sequence, at most 1024 tokens, writes in every direction; what it leaves
// outside the first quarter of the channels is never touched again.
void needle_keys(const Draw& d, Index t, Index head, double* out) {
  normal_row(d, t, head, out);
  const auto& s =
      *std::find_if(d.sequences.begin(), d.sequences.end(), [&](auto& q) { return t < q.end; });
  if (t - s.begin >= std::min<Index>(1024, s.size() / 4))
    std::fill(out + d.width / 4, out + d.width, 0.0);
}

void outlier_keys(const Draw& d, Index t, Index head, double* out) {
  normal_row(d, t, head, out);
  out[3] *= 50;
}

void outlier_values(const Draw& d, Index t, Index head, double* out) {
  normal_row(d, t, head, out);
  out[5] *= 200;
  if (t % 97 == 0) std::for_each(out, out + d.width, [](double& x) { x *= 100; });
}

// Rows scaled by powers of two from 1 to 2^-100: the epsilon of a norm takes over on the way.
void fading_row(const Draw& d, Index t, Index head, double* out) {
  normal_row(d, t, head, out);
  for (Index i = 0; i < d.width; ++i) out[i] = std::ldexp(out[i], -static_cast<int>(t % 101));
}

// Tokens go in pairs. The second has the key of the first, the opposite value, and the beta that
// makes the delta rule take back what the first wrote: b / (1 + b) after b = 1/2.
void paired_keys(const Draw& d, Index t, Index head, double* out) {
  normal_row(d, t - t % 2, head, out);
}
// The second value of a pair takes the first write back and leaves a sixth of a fresh one, so that
// the state does not vanish altogether.
void paired_values(const Draw& d, Index t, Index head, double* out) {
  normal_row(d, t, head, out);
  if (t % 2 == 0) return;
  std::vector<double> first(static_cast<std::size_t>(d.width));
  normal_row(d, t - 1, head, first.data());
  for (Index i = 0; i < d.width; ++i) out[i] = out[i] / 2 - first[static_cast<std::size_t>(i)];
}
void paired_betas(const Draw& d, Index t, Index, double* out) {
  std::fill_n(out, d.width, t % 2 ? pm::logit(1. / 3) : 0.0);
}

void log_sigmoid_logits(const Draw& d, Index t, Index head, double* out) {
  normal_row(d, t, head, out);
  for (Index i = 0; i < d.width; ++i) {
    // Wanted is g = -softplus(x), which A = 1 gives the plain gate at once.
    const double x = out[i];
    out[i] =
        d.shape.gate == Gate::plain ? x : pm::logit(std::min(pm::softplus(x) / kLowerBound, 0.999));
  }
}

// Every sixth token of a sub-chunk of 16 nearly forgets half of the channels and writes with beta
// near 1: a short tail that ends with it is anchored on a gate unlike all others.
bool is_strong(Index t) { return t % 16 == 5; }
void ragged_logits(const Draw& d, Index t, Index head, double* out) {
  normal_row(d, t, head, out);
  for (Index i = 0; i < d.width; ++i) out[i] = 0.5 * out[i] + (is_strong(t) && i % 2 ? 12 : 0);
}
void ragged_betas(const Draw& d, Index t, Index head, double* out) {
  normal_row(d, t, head, out);
  if (is_strong(t)) std::fill_n(out, d.width, 8.0);
}

// Logits over [-104, 104], where fp32 sigmoids and exponentials reach 0, 1 and infinity. Odd heads
// sit in the softplus' tail at -18 under A = 10^6, where a softplus that rounds to 0 loses a decay
// of 0.015.
void saturated_logits(const Draw& d, Index t, Index head, double* out) {
  for (Index i = 0; i < d.width; ++i)
    out[i] =
        head % 2 ? -18 + d.normal(t, head, i) : 208 * d.stream.uniform(d.index(t, head, i)) - 104;
}
void wide_row(const Draw& d, Index t, Index head, double* out) {
  for (Index i = 0; i < d.width; ++i) out[i] = 208 * d.stream.uniform(d.index(t, head, i)) - 104;
}

// Small integers: one-hot keys, at most four nonzero elements 1 or 2 of a query, scaled by 1/8.
void one_hot_keys(const Draw& d, Index t, Index head, double* out) {
  std::fill_n(out, d.width, 0.0);
  out[d.stream.bits(d.index(t, head, 0)) % static_cast<std::uint32_t>(d.width)] = 1;
}
void sparse_queries(const Draw& d, Index t, Index head, double* out) {
  std::fill_n(out, d.width, 0.0);
  for (Index i = 0; i < 4; ++i) {
    const std::uint32_t bits = d.stream.bits(d.index(t, head, i));
    out[(bits >> 2) % static_cast<std::uint32_t>(d.width)] =
        (bits & 1 ? 0.125 : 0.25) * (bits & 2 ? 1 : -1);
  }
}
void integer_row(const Draw& d, Index t, Index head, double* out) {
  for (Index i = 0; i < d.width; ++i)
    out[i] = static_cast<double>(d.stream.bits(d.index(t, head, i)) % 15) - 7;
}
void binary_betas(const Draw& d, Index t, Index head, double* out) {
  for (Index i = 0; i < d.width; ++i) out[i] = d.stream.bits(d.index(t, head, i)) % 4 ? 1 : 0;
}

double unit_slope(const Shape&, Index) { return 1; }

std::map<std::string_view, Recipe> make_recipes() {
  std::map<std::string_view, Recipe> all;
  all["gaussian"] = {.g_raw = normal_row_of(0, 0.5)};
  all["needle"] = {.k = needle_keys, .decay = spread(1e-8, 1e-5)};
  all["slow_decay"] = {.beta_raw = constant_row(pm::logit(2.5e-3)), .decay = all_channels(1e-4)};
  // Weak writes: at beta near 1/2 the keys would wipe the slow channels within a few hundred
  // tokens.
  all["mixed_decay"] = {.beta_raw = normal_row_of(-6, 1), .decay = spread(1e-6, 1)};
  all["log_sigmoid"] = {.g_raw = log_sigmoid_logits, .A = unit_slope, .dt_bias = all_channels(0)};
  all["near_collinear"] = {.k = normal_row_of(1, 1e-3),
                           .beta_raw = constant_row(pm::logit(0.98)),
                           .decay = all_channels(1e-3)};
  all["strong_decay"] = {.decay = all_channels(4.99)};
  all["outlier_channels"] = {.k = outlier_keys, .v = outlier_values};
  all["tiny"] = {.v = normal_row_of(0, 1e-30), .state_scale = 1e-30, .x = fading_row};
  all["fla_cp_test"] = {
      .q = normal_row_of(1, 1),
      .k = normal_row_of(-50, 10),
      .g_raw = normal_row,
      .A =
          [](const Shape& s, Index head) {
            return s.HV == 1 ? 1
                             : 1 + 7 * static_cast<double>(head) / static_cast<double>(s.HV - 1);
          },
      .dt_bias =
          [](const Draw& d, Index head, Index channel) {
            const double u = d.stream.uniform(d.index(0, head, channel));
            return pm::inverse_softplus(pm::exp(pm::log(1e-3) + u * pm::log(100)));
          }};
  all["alternating_sign"] = {
      .k = paired_keys, .v = paired_values, .beta_raw = paired_betas, .decay = all_channels(1e-3)};
  all["ragged"] = {.g_raw = ragged_logits, .beta_raw = ragged_betas};
  all["saturated"] = {.g_raw = saturated_logits,
                      .beta_raw = wide_row,
                      .A = [](const Shape&, Index head) { return head % 2 ? 1e6 : 1.0; },
                      .dt_bias = all_channels(0),
                      .x = wide_row,
                      .z = wide_row};
  all["zero_beta"] = {.g_raw = zero_row, .beta_raw = zero_row, .prepared_gates = true};
  all["exact_integers"] = {.q = sparse_queries,
                           .k = one_hot_keys,
                           .v = integer_row,
                           .g_raw = zero_row,
                           .beta_raw = binary_betas,
                           .integer_state = true,
                           .prepared_keys = true,
                           .prepared_gates = true};
  return all;
}

}  // namespace

void normal_row(const Draw& d, Index t, Index head, double* out) {
  d.stream.normals(d.index(t, head, 0), d.width, out);
}
void zero_row(const Draw& d, Index, Index, double* out) { std::fill_n(out, d.width, 0.0); }

const Recipe& recipe(std::string_view family) {
  static const auto all = make_recipes();
  return all.at(family);
}

double gate_slope(const Recipe& r, const Shape& shape, Index head) {
  return pm::exp(static_cast<float>(pm::log(r.A(shape, head))));
}

double gate_bias(const Recipe& r, const Draw& draw, Index head, Index channel) {
  if (r.dt_bias) return r.dt_bias(draw, head, channel);
  const double decay = r.decay(draw, head, channel), slope = gate_slope(r, draw.shape, head);
  return draw.shape.gate == Gate::bounded ? pm::logit(decay / kLowerBound) / slope
                                          : pm::inverse_softplus(decay / slope);
}

double gate_value(Gate gate, double slope, double logit) {
  return gate == Gate::bounded ? -kLowerBound * pm::sigmoid(slope * logit)
                               : -slope * pm::softplus(logit);
}

}  // namespace numgate
