// What one rounding of a kernel does to doubles, V: one (on a device) or eight at a time. The one
// text of both shadows.
#pragma once
#include <limits>

#include "core/format.h"
#include "oracles/shadow/vector.h"

namespace numgate::shadow {

// How a rounding to nearest is read: in mode I as x + U(-1/2, 1/2) ulp, in mode D to nearest on a
// grid shifted by an offset. With offset 0 that is what the hardware does.
enum class Reading : std::uint8_t { independent, dithered };

template <class V>
NUMGATE_INLINE V splat(double x) {
  return Lanes<V>::splat(x);
}
// The largest power of two <= |v|, 0 for 0.
template <class V>
NUMGATE_INLINE V binade(V v) {
  return from_bits(bits_of(v) & kExponent);
}
// Of non-negative values, or of 0 and powers of two.
template <class V>
NUMGATE_INLINE V larger(V a, V b) {
  return select(bits_of(a) > bits_of(b), a, b);
}
// To the nearest multiple of q, a power of two, ties to even; |v| < 2^51 q.
template <class V>
NUMGATE_INLINE V nearest_multiple(V v, V q) {
  const V big = q * 0x1.8p52;
  return (v + big) - big;
}

// v rounded where `where` holds, to the grid of spacing q; `offset` in units of q.
template <Reading reading, class V, class Mask, class Noise>
NUMGATE_INLINE V rounded(V v, V q, Mask where, double offset, double amplitude, Noise& random) {
  if constexpr (reading == Reading::independent) {
    return v + select(where, random.next() * (q * (amplitude * Noise::kUnit)), V{});
  } else {
    const V shift = q * offset;
    const V error = (nearest_multiple(v + shift, q) - shift) - v;
    return v + select(where, error * amplitude, V{});
  }
}

// v as an fp32 result, rounded where `where` holds.
template <Reading reading, class V, class Mask, class Noise>
NUMGATE_INLINE V as_fp32(V v, Mask where, double offset, Noise& random) {
  const V q = larger(binade(v) * 0x1p-23, splat<V>(0x1p-149));
  return rounded<reading>(v, q, where, offset, 1, random);
}

// One fp32 fused multiply-add c + a b. A zero product rounds nothing.
template <Reading reading, class V, class Noise>
NUMGATE_INLINE V fma_step(V a, V b, V c, double offset, Noise& random) {
  const V p = a * b;
  return as_fp32<reading>(c + p, p != 0, offset, random);
}

// v b in fp32; exact where b is 1.
template <Reading reading, class V, class Noise>
NUMGATE_INLINE V product_step(V v, V b, double offset, Noise& random) {
  const V p = v * b;
  return as_fp32<reading>(p, (p != 0) & (b != 1), offset, random);
}

// A format's numbers.
struct Grid {
  double relative, smallest;  // ulp over binade; the least ulp
  double limit;               // half an ulp beyond the largest finite number is infinity
  bool truncates;

  NUMGATE_HOST_DEVICE explicit Grid(const FormatInfo& f)
      : relative(power(-f.fraction_bits)),
        smallest(power(f.min_exponent - f.fraction_bits)),
        limit(power(f.max_exponent) * (2 - power(-f.fraction_bits) / 2)),
        truncates(f.truncates) {}
};

template <class V>
NUMGATE_INLINE V ulp(const Grid& grid, V v) {
  return larger(binade(v) * grid.relative, splat<V>(grid.smallest));
}

// v in a format that rounds to nearest, subnormals and overflow included; what is on the grid
// stays.
template <Reading reading, class V, class Noise>
NUMGATE_INLINE V to_nearest(const Grid& grid, V v, double offset, double amplitude, Noise& random) {
  const V q = ulp(grid, v);
  const V y = rounded<reading>(v, q, nearest_multiple(v, q) != v, offset, amplitude, random);
  const auto magnitude = bits_of(y) & kMagnitude;
  const auto sign = bits_of(y) & ~kMagnitude;
  const auto infinity = bits_of(splat<V>(std::numeric_limits<double>::infinity()));
  return select(from_bits(magnitude) >= grid.limit, from_bits(infinity | sign), y);
}

// v in a format that truncates.
template <class V>
NUMGATE_INLINE V cut(const Grid& grid, V v) {
  const V q = ulp(grid, v);
  return Lanes<V>::integer_part(v / q) * q;
}

// 2^v to double's accuracy (relative 2^-48).
template <class V>
NUMGATE_INLINE V exp2_of(V v) {
  // Taylor's series of 2^f, |f| <= 1/2: the next term is below 2^-48.
  constexpr double c[] = {1.0,
                          0.6931471805599453,
                          0.2402265069591007,
                          0.05550410866482158,
                          0.009618129107628477,
                          0.0013333558146428443,
                          0.0001540353039338161,
                          1.5252733804059841e-05,
                          1.3215486790144307e-06,
                          1.0178086009239699e-07,
                          7.054911620801123e-09,
                          4.445538271870811e-10,
                          2.5678435993488196e-11};
  const V low = splat<V>(-1020), high = splat<V>(1020);
  v = select(v > low, v, low);
  v = select(v < high, v, high);
  const V whole = nearest_multiple(v, splat<V>(1)), f = v - whole;
  V p = splat<V>(c[12]);
  NUMGATE_UNROLL
  for (int i = 11; i >= 0; --i) p = p * f + c[i];
  return p * Lanes<V>::exp2_integer(whole);
}

// One tensor-core step of operands in a format of `fraction_bits`: c + sum of a(i) b(i), i < L; see
// dot.h.
template <int L, class V, class Left, class Right>
NUMGATE_INLINE V tensor_core_step(Left a, Right b, V c, int fraction_bits) {
  using N = Lanes<V>;
  using Exponents = typename N::Exponents;
  const auto place = [](int e) { return typename N::Word{e} << N::kShift; };
  const auto bias = place(1023), least = place(1023 - 133), cut_at = place(25),
             exact_from = place(25 - 2 * fraction_bits);
  const Exponents zero{};
  Exponents exponent[L], top = N::exponents(larger(binade(c), splat<V>(power(-126))));
  top = c != 0 ? top : zero;
  top = top > least ? top : least - zero;
  NUMGATE_UNROLL
  for (int i = 0; i < L; ++i) {  // a zero factor puts the sum below the floor
    exponent[i] = N::exponents(splat<V>(a(i))) - bias + N::exponents(b(i));
    top = exponent[i] > top ? exponent[i] : top;
  }
  // 2^(25 - e), e the exponent of `top`, and its inverse. The exponent field of 2^(25 - e) in one
  // sum has a constant that overflows once folded.
  const V scale = N::powers(bias - (top - bias)) * power(25), unscale = N::powers(top - cut_at);
  V sum[2] = {N::integer_part(c * scale), V{}};  // two chains of additions, each half as long
  NUMGATE_UNROLL
  for (int i = 0; i < L; ++i) {
    const V y = (a(i) * b(i)) * scale;
    sum[i % 2] += exponent[i] < top - exact_from ? N::integer_part(y) : y;
  }
  return from_bits(bits_of((sum[0] + sum[1]) * unscale) & ~((std::int64_t{1} << 29) - 1));
}

}  // namespace numgate::shadow
