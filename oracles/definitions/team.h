// Who walks a row of a definition: alone, or a team of lanes that share its elements.
//
// A team has `size` lanes; a lane holds count(n) of a row's n elements, the j-th being element(j)
// of what all lanes see. A team of several has exchange(a, mask), the accumulator of lane rank ^
// mask.
#pragma once
#include <cstdint>

#include "oracles/scalars/host_device.h"
#include "oracles/scalars/real.h"

namespace numgate::definition {

struct Alone {
  static constexpr int size = 1;
  static NUMGATE_INLINE std::int64_t count(std::int64_t n) { return n; }
  static NUMGATE_INLINE std::int64_t element(std::int64_t j) { return j; }
};

// The sum of what the lanes have gathered; every lane gets the same bits.
template <class Team, class Real>
NUMGATE_INLINE Real sum(const Team& team, const Accumulator<Real>& gathered) {
  if constexpr (Team::size == 1) {
    return gathered.value();
  } else {
    Accumulator<Real> all = gathered;
    NUMGATE_UNROLL
    for (int mask = 1; mask < Team::size; mask *= 2) all = all + team.exchange(all, mask);
    return all.value();
  }
}

}  // namespace numgate::definition
