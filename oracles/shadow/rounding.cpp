#include "oracles/shadow/rounding.h"

#include <algorithm>

namespace numgate::shadow {

// Applies f to vectors of x, the last one padded with zeros.
template <class F>
static void for_vectors(double* x, std::size_t n, F f) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) save(x + i, f(load(x + i), i, kLanes));
  if (i == n) return;
  double tail[kLanes] = {};
  std::copy(x + i, x + n, tail);
  save(tail, f(load(tail), i, n - i));
  std::copy(tail, tail + (n - i), x + i);
}

template <Reading reading>
static void nearest(const Grid& grid, double* x, std::size_t n, double offset, double amplitude,
                    Random& random) {
  Random local = random;
  for_vectors(
      x, n, [&](Pack v, std::size_t, std::size_t) __attribute__((always_inline)) {
        return to_nearest<reading>(grid, v, offset, amplitude, local);
      });
  random = local;
}

void round_to(const FormatInfo& format, Reading reading, double* x, std::size_t n, double offset,
              double amplitude, Random& random) {
  const Grid grid(format);
  if (grid.truncates) {
    for_vectors(
        x, n, [&](Pack v, std::size_t, std::size_t) __attribute__((always_inline)) {
          return cut(grid, v);
        });
  } else if (reading == Reading::independent) {
    nearest<Reading::independent>(grid, x, n, offset, amplitude, random);
  } else {
    nearest<Reading::dithered>(grid, x, n, offset, amplitude, random);
  }
}

template <Reading reading>
static void product(double* x, const double* b, std::size_t n, double offset, Random& random) {
  Random local = random;
  for_vectors(
      x, n, [&](Pack v, std::size_t i, std::size_t count) __attribute__((always_inline)) {
        double tail[kLanes] = {};
        if (count < kLanes) std::copy(b + i, b + i + count, tail);
        return product_step<reading>(v, count < kLanes ? load(tail) : load(b + i), offset, local);
      });
  random = local;
}

void multiply(Reading reading, double* x, const double* b, std::size_t n, double offset,
              Random& random) {
  if (reading == Reading::independent)
    product<Reading::independent>(x, b, n, offset, random);
  else
    product<Reading::dithered>(x, b, n, offset, random);
}

void exp2(double* x, std::size_t n) {
  for_vectors(
      x, n, [&](Pack v, std::size_t, std::size_t) __attribute__((always_inline)) {
        return exp2_of(v);
      });
}

}  // namespace numgate::shadow
