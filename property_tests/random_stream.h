// Counter-based random numbers: every draw is a function of (seed, tensor, index).
#pragma once
#include <Random123/philox.h>

#include <cstdint>
#include <string_view>

#include "property_tests/portable_math.h"

namespace numgate {

// FNV-1a, 64 bits.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t h = 0xCBF29CE484222325ull;
  for (char ch : text) h = (h ^ static_cast<unsigned char>(ch)) * 0x100000001B3ull;
  return h;
}

// The draws of one tensor. Philox4x32-10: the seed is the key; the counter holds index / 4 and the
// hash of the tensor's name; index % 4 picks the word.
class Stream {
 public:
  Stream(std::uint64_t seed, std::string_view tensor) : seed_(seed), tensor_(hash_of(tensor)) {}

  std::uint32_t bits(std::uint64_t index) const { return block(index / 4)[index % 4]; }
  // Strictly inside (0, 1), symmetric about 1/2.
  double uniform(std::uint64_t index) const { return uniform_of(bits(index)); }
  double normal(std::uint64_t index) const { return portable::inverse_normal(uniform(index)); }
  // normal(first), ..., normal(first + n - 1), the same bits in a quarter of the time.
  void normals(std::uint64_t first, std::int64_t n, double* out) const;

 private:
  static double uniform_of(std::uint32_t bits) { return (bits + 0.5) * 0x1p-32; }
  r123::Philox4x32::ctr_type block(std::uint64_t block) const {
    const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    const r123::Philox4x32::ctr_type counter{
        {low(block), low(block >> 32), low(tensor_), low(tensor_ >> 32)}};
    const r123::Philox4x32::key_type key{{low(seed_), low(seed_ >> 32)}};
    return r123::Philox4x32{}(counter, key);
  }

  std::uint64_t seed_, tensor_;
};

}  // namespace numgate
