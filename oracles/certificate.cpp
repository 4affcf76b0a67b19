#include "oracles/certificate.h"

#include <algorithm>
#include <cmath>

namespace numgate {

void NormBound::step(const TokenNorms& t) {
  const double write = std::abs(t.beta) * t.khat, square = write * t.khat;
  const double decay =
      std::max(1.0, std::abs(1.0 - t.beta * t.khat * t.khat)) * t.alpha * (1.0 + 0x1p-50);
  const double local = (1.0 + square) * std::max(1.0, t.alpha) * state_ + write * t.v;
  error_ = decay * error_ + kLocalError * local + 0x1p-1056;
  state_ = decay * state_ + write * t.v;
}

void NormBound::tighten(double computed_norm) {
  state_ = std::min(state_, computed_norm * kSlack + error_);
}

double NormBound::output_radius(const TokenNorms& t) const {
  return t.qhat * (error_ + kLocalError * state_) * kSlack + kSmallestRadius;
}

double merge_radius(double M_spectral, double M_norm, double B_norm, double state_norm,
                    double state_radius) {
  return (M_spectral * state_radius + kLocalError * (M_norm * state_norm + B_norm)) *
             (1.0 + 0x1p-20) +
         kSmallestRadius;
}

}  // namespace numgate
