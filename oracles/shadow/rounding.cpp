#include "oracles/shadow/rounding.h"

#include <algorithm>
#include <limits>

namespace numgate::shadow {

// Applies f to vectors of x, the last one padded with zeros.
template <class F>
static void for_vectors(double* x, std::size_t n, F f) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) save(x + i, f(load(x + i), i, kLanes));
  if (i == n) return;
  double tail[kLanes] = {};
  std::copy(x + i, x + n, tail);
  save(tail, f(load(tail), i, n - i));
  std::copy(tail, tail + (n - i), x + i);
}

template <Reading reading>
static void nearest(const FormatInfo& f, double* x, std::size_t n, double offset, double amplitude,
                    Random& random) {
  const double smallest = power(f.min_exponent - f.fraction_bits),
               relative = power(-f.fraction_bits);
  // Half an ulp beyond the largest finite number is infinity.
  const Pack limit = broadcast(power(f.max_exponent) * (2 - relative / 2));
  const Pack infinity = broadcast(std::numeric_limits<double>::infinity());
  Random local = random;
  for_vectors(
      x, n, [&](Pack v, std::size_t, std::size_t) __attribute__((always_inline)) {
        const Pack q = larger(binade(v) * relative, broadcast(smallest));
        const Pack y =
            rounded<reading>(v, q, nearest_multiple(v, q) != v, offset, amplitude, local);
        const PackBits sign = bits_of(y) & ~kMagnitude,
                       over = from_bits(bits_of(y) & kMagnitude) >= limit;
        return from_bits((over & (bits_of(infinity) | sign)) | (~over & bits_of(y)));
      });
  random = local;
}

void round_to(Format format, Reading reading, double* x, std::size_t n, double offset,
              double amplitude, Random& random) {
  const FormatInfo& f = info(format);
  if (f.truncates) {
    const double smallest = power(f.min_exponent - f.fraction_bits),
                 relative = power(-f.fraction_bits);
    for_vectors(
        x, n, [&](Pack v, std::size_t, std::size_t) __attribute__((always_inline)) {
          const Pack q = larger(binade(v) * relative, broadcast(smallest));
          return integer_part(v / q) * q;
        });
  } else if (reading == Reading::independent) {
    nearest<Reading::independent>(f, x, n, offset, amplitude, random);
  } else {
    nearest<Reading::dithered>(f, x, n, offset, amplitude, random);
  }
}

template <Reading reading>
static void product(double* x, const double* b, std::size_t n, double offset, Random& random) {
  Random local = random;
  for_vectors(
      x, n, [&](Pack v, std::size_t i, std::size_t count) __attribute__((always_inline)) {
        double tail[kLanes] = {};
        if (count < kLanes) std::copy(b + i, b + i + count, tail);
        const Pack factor = count < kLanes ? load(tail) : load(b + i), p = v * factor;
        const Pack q = larger(binade(p) * 0x1p-23, broadcast(0x1p-149));
        return rounded<reading>(p, q, (p != 0) & (factor != 1), offset, 1, local);
      });
  random = local;
}

void multiply(Reading reading, double* x, const double* b, std::size_t n, double offset,
              Random& random) {
  if (reading == Reading::independent)
    product<Reading::independent>(x, b, n, offset, random);
  else
    product<Reading::dithered>(x, b, n, offset, random);
}

void exp2(double* x, std::size_t n) {
  // Taylor's series of 2^f, |f| <= 1/2: the next term is below 2^-48.
  static constexpr double c[] = {1.0,
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
  for_vectors(
      x, n, [&](Pack v, std::size_t, std::size_t) __attribute__((always_inline)) {
        const Pack low = broadcast(-1020), high = broadcast(1020);
        v = v > low ? v : low;
        v = v < high ? v : high;
        const Pack whole = nearest_multiple(v, broadcast(1)), f = v - whole;
        Pack p = broadcast(c[12]);
        for (int i = 11; i >= 0; --i) p = p * f + c[i];
        return p * from_bits((__builtin_convertvector(whole, PackBits) + 1023) << 52);
      });
}

bool holds(Format f, Format stored) {
  if (f == stored) return true;
  const FormatInfo &to = info(f), &from = info(stored);
  return from.fraction_bits <= to.fraction_bits && from.min_exponent >= to.min_exponent &&
         from.max_exponent <= to.max_exponent;
}

}  // namespace numgate::shadow
