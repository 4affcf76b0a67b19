// The error of one row of an output: what the sums over windows are made of, on host and device.
#pragma once
#include <cmath>
#include <cstdint>

#include "oracles/shadow/steps.h"

namespace numgate::shadow {

struct RowError {
  double squares, largest;  // sum of squared errors; largest |error|
  // Half an fp32 ulp of the row's largest truth: no kernel that returns fp32 can be asked for less.
  // At least 2^-149, as errors are kept in fp32.
  double floor;
};

// value [width] against the truth hi + lo [width]; lo may be null.
NUMGATE_HOST_DEVICE inline RowError row_error(const double* value, const double* hi,
                                              const double* lo, std::int64_t width) {
  RowError row{};
  double largest_truth = 0;
  for (std::int64_t d = 0; d < width; ++d) {
    const double e = std::abs((value[d] - hi[d]) - (lo == nullptr ? 0.0 : lo[d])),
                 truth = std::abs(hi[d]);
    row.squares += e * e;
    row.largest = row.largest < e ? e : row.largest;
    largest_truth = largest_truth < truth ? truth : largest_truth;
  }
  if (largest_truth > 0)
    row.floor = larger(binade(largest_truth) * 0x1p-24, splat<double>(0x1p-149));
  return row;
}

}  // namespace numgate::shadow
