#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/kda/kda.h"

namespace numgate::kernels::cpu {

// What prepare and the state pass leave in memory, by operand: bytes as two kernels wrote them.
struct TwoOutputs {
  std::vector<std::uint8_t> any, tuned;
};
// Both kernels on the same random inputs; gates reach from almost none to the bound. The gate of
// channel 3 of value head 0 is NaN at token `nan_token`.
std::map<std::string, TwoOutputs> run_both(std::int64_t T, int H, int HV, int K, int V,
                                           std::uint64_t seed, std::int64_t nan_token = -1);

}  // namespace numgate::kernels::cpu
