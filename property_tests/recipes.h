// Recipes: what each family draws, row by row.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "core/case_id.h"
#include "property_tests/random_stream.h"

namespace numgate {

// One tensor in the making: rows of `width` elements, `heads` of them a token.
struct Draw {
  const Shape& shape;
  Stream stream;
  std::int64_t heads, width;
  std::vector<Segment> sequences;  // of the shape

  std::uint64_t index(std::int64_t t, std::int64_t head, std::int64_t i) const {
    return static_cast<std::uint64_t>((t * heads + head) * width + i);
  }
  double normal(std::int64_t t, std::int64_t head, std::int64_t i) const {
    return stream.normal(index(t, head, i));
  }
};

// Writes the row's `width` elements.
using Row = std::function<void(const Draw&, std::int64_t t, std::int64_t head, double* out)>;
// A number of each head and channel.
using PerChannel = std::function<double(const Draw&, std::int64_t head, std::int64_t channel)>;

void normal_row(const Draw&, std::int64_t t, std::int64_t head, double* out);
void zero_row(const Draw&, std::int64_t t, std::int64_t head, double* out);

// The decay rates -g are made by gates: a recipe names the rate of each channel at g_raw = 0, and
// dt_bias follows from it, from A = exp(A_log) and from the kind of gate. A differs between heads,
// so that a kernel that reads another head's shows.
struct Recipe {
  Row q = normal_row, k = normal_row, v = normal_row;
  Row g_raw = zero_row, beta_raw = normal_row;
  std::function<double(const Shape&, std::int64_t head)> A = [](const Shape&, std::int64_t head) {
    return 1 + 0.5 * static_cast<double>(head % 4);
  };
  PerChannel decay = [](const Draw&, std::int64_t, std::int64_t) { return 1e-2; };
  PerChannel dt_bias = nullptr;  // instead of the bias that `decay` asks for
  double state_scale = 1;        // of a random state0
  bool integer_state = false;    // a random state0 holds integers from -7 to 7
  bool prepared_keys = false;    // q and k are qhat and khat as they stand (kda.core only)
  bool prepared_gates = false;   // g_raw and beta_raw are g and beta as they stand (kda.core only)
  // The elementwise stages' x and o where they differ from k (kda.l2norm) or v (kda.conv,
  // kda.out_norm); z too.
  Row x = nullptr, z = normal_row;
};

// Of a family that the registry lists.
const Recipe& recipe(std::string_view family);

// exp(A_log) for the fp32 A_log that the case holds.
double gate_slope(const Recipe& r, const Shape& shape, std::int64_t head);
double gate_bias(const Recipe& r, const Draw& draw, std::int64_t head, std::int64_t channel);
// g for a logit g_raw + dt_bias.
double gate_value(Gate gate, double slope, double logit);

}  // namespace numgate
