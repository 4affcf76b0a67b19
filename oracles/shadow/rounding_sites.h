// The Sites of the shadow: every site of a form rounds as its declared format does, at random or as
// hardware does. One text for host and device; an `Arithmetic` does the rounding on its matrices:
// - round_to(format, reading, m, offset, amplitude): see rounding.h.
// - product(reading, m, b, offset): m <- m .* b in fp32.
// - fma_chain(reading, a, b, c, offset), tensor_core(pieces, format, c): see dot.h.
// - exp2, exp, sigmoid, softplus, rsqrt(m); multiply(m, b), add_product(a, b, c); all_finite(m).
#pragma once
#include <cstdint>
#include <utility>

#include "core/plan.h"
#include "oracles/forms/sites.h"
#include "oracles/shadow/steps.h"

namespace numgate::shadow {

// What is rounded at a site; each has its own offset in mode D, or the errors of one product would
// be one.
enum Role : std::uint8_t { product, elementary, stored, left, right, sum, kRoles };

// Errors of the kernels' elementary functions, in roundings: exp and exp2 take at most 1.01
// ulp and mostly half, the others up to 2.5 ulp.
inline constexpr double kExponential = 1.2, kElementary = 2;

// What one draw does at each site. Plain data.
struct DrawTable {
  Format plan[kSiteCount] = {};
  FormatInfo formats[kFormats.size()] = {};  // kFormats, which a device cannot reach
  double offsets[kSiteCount][kRoles] = {};
  std::uint64_t active = 0;  // sites that round, by bit
  Reading reading = Reading::independent;
  bool emulate = false;
  std::uint64_t stream = 0;  // seeds the noise
};

template <class Arithmetic>
class RoundingSites {
 public:
  using Real = double;
  using M = typename Arithmetic::M;
  using Operand = forms::Operand<M>;

  NUMGATE_HOST_DEVICE RoundingSites(const DrawTable& table, Arithmetic arithmetic)
      : table_(table), arithmetic_(std::move(arithmetic)) {}

  NUMGATE_HOST_DEVICE Format format(Site site) const {
    return table_.plan[static_cast<std::size_t>(site)];
  }
  NUMGATE_HOST_DEVICE void round(Site site, M& m) {
    if (rounds(site)) round_as(Format::ieee, site, product, m);
  }
  NUMGATE_HOST_DEVICE void multiply(Site site, M& m, const M& b) {
    if (rounds(site))
      arithmetic_.product(table_.reading, m, b, offset(site, product));
    else
      arithmetic_.multiply(m, b);
  }

  // exp2(0) = exp(0) = 1 lies on the grid, so it stays exact.
  NUMGATE_HOST_DEVICE void exp2(Site site, M& m) {
    arithmetic_.exp2(m);
    elementary_error(site, m, kExponential);
  }
  NUMGATE_HOST_DEVICE void exp(Site site, M& m) {
    arithmetic_.exp(m);
    elementary_error(site, m, kExponential);
  }
  NUMGATE_HOST_DEVICE void sigmoid(Site site, M& m) {
    arithmetic_.sigmoid(m);
    elementary_error(site, m, kElementary);
  }
  NUMGATE_HOST_DEVICE void softplus(Site site, M& m) {
    arithmetic_.softplus(m);
    elementary_error(site, m, kElementary);
  }
  NUMGATE_HOST_DEVICE void rsqrt(Site site, M& m) {
    arithmetic_.rsqrt(m);
    elementary_error(site, m, kElementary);
  }

  double constant(Site site, double x) {
    if (static_cast<double>(static_cast<float>(x)) == x) return x;
    M m = M::Constant(1, 1, x);
    round(site, m);
    return m(0, 0);
  }

  NUMGATE_HOST_DEVICE void store(Site site, Operand& x) {
    const Format f = format(site);
    if (holds(f, x.stored)) return;
    x.stored = f;
    if (rounds(site)) round_as(f, site, stored, x.values);
  }
  NUMGATE_HOST_DEVICE void state(Operand& s, M m) {
    s.values = std::move(m);
    s.stored = format(Site::state);
    if (rounds(Site::state)) round_as(s.stored, Site::state, stored, s.values);
  }

  NUMGATE_HOST_DEVICE void fma_dot(Site site, const M& a, const M& b, M& c) {
    if (rounds(site))
      arithmetic_.fma_chain(table_.reading, a, b, c, offset(site, sum));
    else
      arithmetic_.add_product(a, b, c);
  }
  NUMGATE_HOST_DEVICE void vector_dot(Site site, const Operand& a, const Operand& b, M& c) {
    const Format f = format(site);
    M x, y;  // the operands as this dot reads them, where they differ
    if (!rounds(site) || !arithmetic_.all_finite(a.values) || !arithmetic_.all_finite(b.values))
      arithmetic_.add_product(a.values, b.values, c);
    else if (holds(f, a.stored) && holds(f, b.stored))
      fma_dot(site, a.values, b.values, c);
    else
      fma_dot(site, operand(site, f, left, a, x), operand(site, f, right, b, y), c);
  }
  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void dot(Site site, const Operand& a, const Operand& b,
                                                M& c) {
    const Format f = format(site);
    if (f == Format::ieee) return vector_dot(site, a, b, c);
    if (!rounds(site) || !arithmetic_.all_finite(a.values) || !arithmetic_.all_finite(b.values)) {
      arithmetic_.add_product(a.values, b.values, c);
    } else if (info(f).pieces == 1) {
      M x, y;
      const M& narrow_a = operand(site, f, left, a, x);
      const M* const pieces[][2] = {{&narrow_a, &operand(site, f, right, b, y)}};
      arithmetic_.tensor_core(pieces, info(f), c);
    } else {
      // hi + lo: hi as the hardware rounds it, in every draw, because lo makes up for it; what is
      // lost is lo's rest.
      const Format piece = f == Format::bf16x3 ? Format::bf16 : Format::tf32;
      const auto [a_hi, a_lo] = split(site, piece, left, a);
      const auto [b_hi, b_lo] = split(site, piece, right, b);
      const M* const pieces[][2] = {{&a_lo, &b_hi}, {&a_hi, &b_lo}, {&a_hi, &b_hi}};
      arithmetic_.tensor_core(pieces, info(f), c);
    }
  }

  // Sites that have rounded something so far, by bit.
  NUMGATE_HOST_DEVICE std::uint64_t used_bits() const { return used_; }

 private:
  struct HighLow {
    M hi, lo;
  };

  NUMGATE_HOST_DEVICE const FormatInfo& info(Format f) const {
    return table_.formats[static_cast<std::size_t>(f)];
  }
  NUMGATE_HOST_DEVICE double offset(Site site, Role role) const {
    return table_.offsets[static_cast<std::size_t>(site)][role];
  }
  NUMGATE_HOST_DEVICE bool rounds(Site site) {
    const std::uint64_t bit = std::uint64_t{1} << static_cast<int>(site);
    used_ |= table_.active & bit;
    return (table_.active & bit) != 0;
  }
  // Whether a value in format `kept` is unchanged by rounding to `f`.
  NUMGATE_HOST_DEVICE bool holds(Format f, Format kept) const {
    if (f == kept) return true;
    const FormatInfo &to = info(f), &from = info(kept);
    return from.fraction_bits <= to.fraction_bits && from.min_exponent >= to.min_exponent &&
           from.max_exponent <= to.max_exponent;
  }
  NUMGATE_HOST_DEVICE void round_as(Format f, Site site, Role role, M& m, double amplitude = 1) {
    arithmetic_.round_to(info(f), table_.reading, m, offset(site, role), amplitude);
  }
  NUMGATE_HOST_DEVICE void elementary_error(Site site, M& m, double amplitude) {
    if (rounds(site)) round_as(Format::ieee, site, elementary, m, table_.emulate ? 1 : amplitude);
  }
  NUMGATE_HOST_DEVICE const M& operand(Site site, Format f, Role role, const Operand& x, M& space) {
    if (holds(f, x.stored)) return x.values;
    space = x.values;
    round_as(f, site, role, space);
    return space;
  }
  NUMGATE_HOST_DEVICE HighLow split(Site site, Format piece, Role role, const Operand& x) {
    HighLow out{x.values, M::Zero(x.values.rows(), x.values.cols())};
    if (holds(piece, x.stored)) return out;
    arithmetic_.round_to(info(piece), Reading::dithered, out.hi, 0, 1);
    out.lo = x.values - out.hi;
    round_as(piece, site, role, out.lo);
    return out;
  }

  const DrawTable& table_;
  Arithmetic arithmetic_;
  std::uint64_t used_ = 0;
};

}  // namespace numgate::shadow
