// Decays inside a chunk, by sub-chunks of 16 tokens.
#pragma once
#include "kernels/elementary.h"
#include "kernels/simt/simt.h"

namespace numgate::kernels::NUMGATE_BACKEND {

// log2 of a channel's decay across the sub-chunks [first, last). total [4][K]: of each.
template <int K>
__device__ __forceinline__ float log_across(simt::Shared<const float> total, int channel, int first,
                                            int last) {
  float sum = 0;
  for (int b = first; b < last; ++b) sum += total[b * K + channel];
  return sum;
}
template <int K>
__device__ __forceinline__ float decay_across(simt::Shared<const float> total, int channel,
                                              int first, int last) {
  return elementary::exp2_flushed(log_across<K>(total, channel, first, last));
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
