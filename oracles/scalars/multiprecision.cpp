#include "oracles/scalars/multiprecision.h"

#include <bit>
#include <cstdint>

namespace numgate {

void assign_exactly(Mpfr256& r, const DoubleDouble<double>& x) {
  static_assert(sizeof(mp_limb_t) == 8);
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  const auto hi = std::bit_cast<std::uint64_t>(x.hi), lo = std::bit_cast<std::uint64_t>(x.lo);
  const int hi_exponent = static_cast<int>((hi >> 52) & 2047),
            lo_exponent = static_cast<int>((lo >> 52) & 2047);
  const int gap = hi_exponent - lo_exponent;
  const bool opposite = (hi ^ lo) >> 63 != 0, normal = hi_exponent > 0 && hi_exponent < 2047;
  // Zeros, subnormals, far-away low words, and a power of two less something, whose leading bit
  // would move.
  if (!normal || (x.lo != 0 && (lo_exponent == 0 || gap < 53 || gap >= 192 ||
                                (opposite && (hi & kFraction) == 0)))) {
    mpfr_set_d(r.backend().data(), x.hi, MPFR_RNDN);
    mpfr_add_d(r.backend().data(), r.backend().data(), x.lo, MPFR_RNDN);
    return;
  }
  // Both significands with their leading bit at the top of a 64-bit word; limb 3 is the most
  // significant.
  unsigned long long limbs[4] = {0, 0, 0, ((hi & kFraction) | (kFraction + 1)) << 11};
  if (x.lo != 0) {
    const std::uint64_t word = ((lo & kFraction) | (kFraction + 1)) << 11;
    const int limb = 3 - gap / 64, shift = gap % 64;
    unsigned long long low[4] = {};
    low[limb] = word >> shift;
    if (shift > 0) low[limb - 1] = word << (64 - shift);
    unsigned char borrow = 0;
    for (int i = 0; i < 4; ++i) {
      if (!opposite)
        limbs[i] |= low[i];
      else
        borrow = _subborrow_u64(borrow, limbs[i], low[i], &limbs[i]);
    }
  }
  mpfr_ptr p = r.backend().data();
  auto* significand = static_cast<mp_limb_t*>(mpfr_custom_get_significand(p));
  for (int i = 0; i < 4; ++i) significand[i] = limbs[i];
  mpfr_custom_init_set(p, x.hi < 0 ? -MPFR_REGULAR_KIND : MPFR_REGULAR_KIND, hi_exponent - 1022,
                       mpfr_get_prec(p), significand);
}

}  // namespace numgate
