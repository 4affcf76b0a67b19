// The matrices of the forms on the host.
#pragma once
#include <Eigen/Core>

#include "oracles/forms/sites.h"

namespace numgate::forms {

template <class Real>
using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace numgate::forms
