// Tiles that tell one tensor core from another: every class of inputs shows a rule that the others
// hide. Deterministic.
#pragma once
#include <vector>

#include "kernels/simt/tensor_core.h"

namespace numgate::tensor_core {

enum class InputClass : std::uint8_t {
  plain,              // exponents within three of 0
  wide_exponents,     // terms far apart, where most of them are lost
  near_cut,           // terms around 2^(emax - F), in half of the groups under two that cancel
  dominating_addend,  // C up to 2^30 times the products, or cancelling the first product
  raw_bits,           // any bits: NaN, infinities, subnormals
  near_floor,         // results around the least exponent
  signed_zeros,       // most terms are zeros of either sign
};
inline constexpr int kInputClasses = 7;
const char* name(InputClass c);

// Four tiles that follow each other share B, as the four warps of a wgmma do, and the class.
inline constexpr int kGroup = 4;
constexpr InputClass input_class(int tile) {
  return static_cast<InputClass>(tile / kGroup % kInputClasses);
}

// `count` tiles, a multiple of kGroup. D is zero. Integers have the same classes: sizes for
// exponents, the limits of int32 for the cut and the floor.
std::vector<Tile> input_tiles(Type type, int count);

}  // namespace numgate::tensor_core
