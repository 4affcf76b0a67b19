#include "kernels/simt/mma.h"

#include <cstring>

namespace numgate::simt {
inline namespace cpu {
namespace {

using tensor_core::Tile;

// Register r of A holds row lane/4 + 8 (r % 2), register r of B column lane/4; the elements of a
// register are neighbours in k, the four lanes of a row follow each other, and then the next
// register.
template <int per_register>
void gather(const void* const* deposits, Tile& tile) {
  constexpr int kBits = 32 / per_register;
  constexpr std::uint32_t kMask = 0xffffffffu >> (32 - kBits);
  for (int lane = 0; lane < 32; ++lane) {
    const auto& f = *static_cast<const Fragments*>(deposits[lane]);
    const int row = lane / 4, k = lane % 4 * per_register;
    for (int p = 0; p < per_register; ++p) {
      for (int r = 0; r < 4; ++r) {
        tile.a[k + r / 2 * 4 * per_register + p][row + r % 2 * 8] = f.a[r] >> (p * kBits) & kMask;
      }
      for (int r = 0; r < 2; ++r) {
        tile.b[k + r * 4 * per_register + p][row] = f.b[r] >> (p * kBits) & kMask;
      }
    }
    std::uint32_t c[4];
    std::memcpy(c, f.c, sizeof c);
    for (int r = 0; r < 4; ++r) tile.c[lane % 4 * 2 + r % 2][row + r / 2 * 8] = c[r];
  }
}

void scatter(const void* const* deposits, const Tile& tile) {
  for (int lane = 0; lane < 32; ++lane) {
    std::uint32_t d[4];
    for (int r = 0; r < 4; ++r) d[r] = tile.d[lane % 4 * 2 + r % 2][lane / 4 + r / 2 * 8];
    std::memcpy(static_cast<const Fragments*>(deposits[lane])->d, d, sizeof d);
  }
}

}  // namespace

void meet_for_mma(const Fragments& fragments) {
  constexpr std::uint32_t kAll = 0xffffffffu;
  Warp& warp = *this_thread->warp;
  warp.deposit[this_thread->lane] = &fragments;
  if (!arrive(kAll, Meeting::mma)) return;
  for (const void* p : warp.deposit) {
    if (static_cast<const Fragments*>(p)->type != fragments.type) [[unlikely]] {
      fail("divergent warp: its lanes are at different mma instructions");
    }
  }
  Tile tile;
  switch (tensor_core::depth(fragments.type)) {
    case 8:
      gather<1>(warp.deposit, tile);
      break;
    case 16:
      gather<2>(warp.deposit, tile);
      break;
    default:
      gather<4>(warp.deposit, tile);
      break;
  }
  tensor_core::multiply(fragments.type, tensor_core::Unit::mma, tile);
  scatter(warp.deposit, tile);
  release(kAll);
}

}  // namespace cpu
}  // namespace numgate::simt
