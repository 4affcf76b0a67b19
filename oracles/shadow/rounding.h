// Rounding of arrays of doubles to a declared format, as the shadow reads it.
#pragma once
#include <cstddef>

#include "core/format.h"
#include "oracles/shadow/steps.h"

namespace numgate::shadow {

// x[0, n) to format f. Nearest formats by `reading` with an error of `amplitude` times that of one
// rounding, on the grid of x's own binade, subnormals and overflow included. A value on its
// format's grid stays: a perturbed value never lies there, so it is an input or a structural 0 or 1
// and the hardware has it too. Formats that truncate cut.
void round_to(const FormatInfo& f, Reading reading, double* x, std::size_t n, double offset,
              double amplitude, Random& random);

// x <- x .* b in fp32; where b is 1 the product is exact.
void multiply(Reading reading, double* x, const double* b, std::size_t n, double offset,
              Random& random);

// x <- 2^x to double's accuracy (relative 2^-48).
void exp2(double* x, std::size_t n);

}  // namespace numgate::shadow
