#include "oracles/certificate.h"

namespace numgate {

double merge_radius(double M_spectral, double M_norm, double B_norm, double state_norm,
                    double state_radius) {
  return (M_spectral * state_radius + kLocalError * (M_norm * state_norm + B_norm)) *
             (1.0 + 0x1p-20) +
         kSmallestRadius;
}

}  // namespace numgate
