// The reduction trees of the kernels' vector code.
#pragma once
#include "oracles/forms/sites.h"

namespace numgate::forms {

// Row by row sum of a .* b [n d] -> [n 1] as a warp does it: lane l of 32 accumulates elements l, l
// + 32, ..., then a butterfly over 16, 8, 4, 2, 1.
template <class Sites>
NUMGATE_HOST_DEVICE typename Sites::M warp_dot(Sites& sites, Site site, const typename Sites::M& a,
                                               const typename Sites::M& b) {
  using M = typename Sites::M;
  M lanes = M::Zero(a.rows(), 32);
  for (Index d = 0; d < a.cols(); d += 32) {
    lanes += a.middleCols(d, 32).cwiseProduct(b.middleCols(d, 32));
    sites.round(site, lanes);
  }
  for (Index width = 16; width > 0; width /= 2) {
    lanes = (lanes.leftCols(width) + lanes.rightCols(width)).eval();
    sites.round(site, lanes);
  }
  return lanes;
}

// x S for one row x [1 K]: four sums over K/4 consecutive rows, combined (p0 + p1) + (p2 + p3).
template <class Sites>
typename Sites::M quarter_dot(Sites& sites, Site site, const typename Sites::M& x,
                              const Operand<typename Sites::M>& S) {
  using M = typename Sites::M;
  const Index quarter = x.cols() / 4;
  M partial[4];
  for (Index p = 0; p < 4; ++p) {
    partial[p].setZero(1, S.values.cols());
    sites.vector_dot(site, {x.middleCols(p * quarter, quarter)},
                     {S.values.middleRows(p * quarter, quarter), S.stored}, partial[p]);
  }
  M left = partial[0] + partial[1], right = partial[2] + partial[3];
  sites.round(site, left);
  sites.round(site, right);
  left += right;
  sites.round(site, left);
  return left;
}

}  // namespace numgate::forms
