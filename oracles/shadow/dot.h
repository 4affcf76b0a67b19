// Products c <- c + a b with every rounding of the unit that runs them, on matrices of doubles.
#pragma once
#include <cstddef>
#include <vector>

#include "oracles/shadow/steps.h"

namespace numgate::shadow {

// Dense and row-major: a [m k], b [k n], c [m n].
struct ProductShape {
  std::size_t m, n, k;
};

// fp32 fused multiply-adds in ascending k, one rounding a product. A zero product rounds nothing.
void fma_chain(Reading reading, ProductShape s, const double* a, const double* b, double* c,
               double offset, Random& random);

// One piece of the operands; x3 schemes run several in each step.
struct Pieces {
  const double *a, *b;
};

// Tensor-core steps of `products` in ascending k onto the fp32 accumulator (NUMERICS 1): products
// and addend cut toward zero at 2^(emax - 25), the sum cut to 24 bits. Applied literally, to
// operands that other sites have perturbed. Perturbed operands are off their format's grid, where
// every product would lose something; products of operands with `fraction_bits` lose nothing unless
// their last place, 2^(e - 2 fraction_bits), lies below the cut.
void tensor_core(ProductShape s, const std::vector<Pieces>& pieces, int products, int fraction_bits,
                 double* c);

}  // namespace numgate::shadow
