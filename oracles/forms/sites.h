// What a form asks of its arithmetic. A form is a template over `Sites`, which says what happens
// wherever a production kernel rounds; the same text is then read as truth, as shadow or as an
// emulated kernel.
//
// A Sites has a scalar type `Real`, row-major matrices `M` of it that speak Eigen's language, and,
// on these, whole and in place:
// - format(site): what the plan declares, where that decides between algorithms.
// - round(site, m): an fp32 operation of the kernel produced m; its error belongs to `site`.
// - multiply(site, m, b): m <- m .* b, rounded to fp32; exact where b is 1.
// - exp2, exp, sigmoid, softplus, rsqrt(site, m): rounded as the kernels' own; exp(0) is exact.
// - constant(site, x): a constant kept in fp32, one rounding for the whole run.
// - store(site, operand): written in the plan's format of a store site. Rounding is idempotent, so
//   nothing happens where the format it is already in is at least as narrow.
// - state(operand, m): m, the result of one fused operation, stored at site `state`.
// - dot(site, a, b, c): c <- c + a b with the operands and on the unit that the plan gives a dot
//   site; a zero product changes nothing.
// - vector_dot(site, a, b, c): the operands rounded to the plan's format, then fp32 fused
//   multiply-adds.
// - fma_dot(site, a, b, c): the same by fp32 fused multiply-adds, whatever the plan.
//
// Forms are text for host and device: their matrices are Eigen's (oracles/forms/matrix.h) or those
// of a team of threads (oracles/cuda/team_matrix.h).
#pragma once
#include <cstddef>

#include "core/plan.h"
#include "oracles/scalars/real.h"

namespace numgate::forms {

using Index = std::ptrdiff_t;

template <class Real>
Real log2_of_e() {
  return constant<Real>(
      "1."
      "442695040888963407359924681001892137426645954152985934135449406931109219181185079885526623");
}

// A matrix and the format that its values are known to be in.
template <class M>
struct Operand {
  M values;
  Format stored = Format::ieee;
};

}  // namespace numgate::forms
