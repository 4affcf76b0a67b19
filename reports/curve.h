// The curves of the report's charts.
#pragma once
#include <vector>

#include "core/profile.h"
#include "reports/result.h"

namespace numgate {

// Error, shadow and score against position for one head, by rank, at most 8 points an octave: the
// last window of each eighth of an octave, or `worst` (an index into the windows) where it falls
// into that eighth.
std::vector<Curve> curves(const TensorProfile& tensor, const std::vector<double>& scores,
                          std::int64_t head, std::size_t worst);

}  // namespace numgate
