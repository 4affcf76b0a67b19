// The reduction trees of the kernels' vector code.
#pragma once
#include "oracles/forms/sites.h"

namespace numgate::forms {

// Row by row sum of a .* b [n d] -> [n 1] as a warp does it: lane l of 32 accumulates elements l, l
// + 32, ..., then a butterfly over 16, 8, 4, 2, 1.
template <class Sites>
Matrix<typename Sites::Real> warp_dot(Sites& sites, Site site,
                                      const Matrix<typename Sites::Real>& a,
                                      const Matrix<typename Sites::Real>& b) {
  using M = Matrix<typename Sites::Real>;
  M lanes = M::Zero(a.rows(), 32);
  for (Eigen::Index d = 0; d < a.cols(); d += 32) {
    lanes += a.middleCols(d, 32).cwiseProduct(b.middleCols(d, 32));
    sites.round(site, lanes);
  }
  for (Eigen::Index width = 16; width > 0; width /= 2) {
    lanes = (lanes.leftCols(width) + lanes.rightCols(width)).eval();
    sites.round(site, lanes);
  }
  return lanes;
}

// x S for one row x [1 K]: four sums over K/4 consecutive rows, combined (p0 + p1) + (p2 + p3).
template <class Sites>
Matrix<typename Sites::Real> quarter_dot(Sites& sites, Site site,
                                         const Matrix<typename Sites::Real>& x,
                                         const Operand<typename Sites::Real>& S) {
  using M = Matrix<typename Sites::Real>;
  const Eigen::Index quarter = x.cols() / 4;
  M partial[4];
  for (Eigen::Index p = 0; p < 4; ++p) {
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
