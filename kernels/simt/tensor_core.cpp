// The model of tensor_core.h on vectors: one lane a row. Significands are floats in (-2, 2),
// exponents are integers apart from them, so no operand is too large or too small; a product has at
// most 22 bits and is exact, and so is its multiple by a power of two; the conversion to an integer
// is the cut.
#include "kernels/simt/tensor_core.h"

#include <cstring>

namespace numgate::tensor_core {
namespace {

using Floats [[gnu::vector_size(64), gnu::may_alias]] = float;
using Ints [[gnu::vector_size(64), gnu::may_alias]] = std::int32_t;
using Words [[gnu::vector_size(64), gnu::may_alias]] = std::uint32_t;
using HalfInts [[gnu::vector_size(32), gnu::may_alias]] = std::int32_t;
using Doubles [[gnu::vector_size(64), gnu::may_alias]] = double;
using Longs [[gnu::vector_size(64), gnu::may_alias]] = std::int64_t;
static_assert(sizeof(Floats) == sizeof(float) * kRows);

constexpr std::int32_t kFloor = -133;
constexpr std::int32_t kNone = -100000;  // the exponent of zero

struct Numbers {
  Floats significand;
  Ints exponent;
};

Ints max(Ints a, Ints b) { return a > b ? a : b; }

template <int exponent_bits, int fraction_bits>
Numbers decode(Words code, Ints& special) {
  constexpr std::uint32_t kTop = (1u << exponent_bits) - 1;
  const Words exponent = code >> fraction_bits & kTop;
  const Words fraction = (code & ((1u << fraction_bits) - 1)) << (23 - fraction_bits);
  const Words sign = (code >> (exponent_bits + fraction_bits)) << 31;
  const Words one = sign | 0x3f800000u;
  special |= exponent == kTop;
  const Ints subnormal = exponent == 0u, zero = subnormal & (fraction == 0u);
  Numbers n;
  n.significand = reinterpret_cast<Floats>(one | fraction);
  n.significand -= reinterpret_cast<Floats>(reinterpret_cast<Words>(subnormal) & one);
  n.exponent = reinterpret_cast<Ints>(exponent) - subnormal - static_cast<int>(kTop / 2);
  n.exponent = zero ? Ints{} + kNone : n.exponent;
  return n;
}

template <Type type>
Numbers read(Words raw, Ints& special) {
  if constexpr (type == Type::tf32) return decode<8, 10>(raw >> 13, special);
  if constexpr (type == Type::bf16) return decode<8, 7>(raw, special);
  if constexpr (type == Type::fp16) return decode<5, 10>(raw, special);
  if constexpr (type == Type::e5m2) return decode<5, 2>(raw, special);
  if constexpr (type == Type::e4m3) {
    Ints ignored{};
    special |= (raw & 0x7fu) == 0x7fu;
    return decode<4, 3>(raw, ignored);
  }
}

// The operands of a step.
struct Operands {
  Numbers a[kMaxDepth];
  alignas(64) float significand[kMaxDepth][kColumns];
  alignas(64) std::int32_t exponent[kMaxDepth][kColumns];
};

Floats power_of_two(Ints exponent) { return reinterpret_cast<Floats>((exponent + 127) << 23); }

Ints cut(Floats significand, Ints shift) {
  return __builtin_convertvector(significand * power_of_two(max(shift, Ints{} - 60)), Ints);
}

// Half of the rows: (sum + addend) 2^lsb as fp32 toward zero. Sixteen products stay below 2^31, but
// not together with the addend; a double holds them all.
HalfInts store(HalfInts sum, HalfInts addend, HalfInts lsb, std::uint32_t mask) {
  const Longs power = (__builtin_convertvector(lsb, Longs) + 1023) << 52;
  const Doubles value =
      (__builtin_convertvector(sum, Doubles) + __builtin_convertvector(addend, Doubles)) *
      reinterpret_cast<Doubles>(power);
  const Longs bits = reinterpret_cast<Longs>(value) & INT64_MAX;
  const Doubles magnitude = reinterpret_cast<Doubles>(bits);
  Longs code = (bits >> 29) - (std::int64_t{1023 - 127} << 23);
  const Doubles small = magnitude < 0x1p-126 ? magnitude * 0x1p149 : Doubles{};
  code = magnitude < 0x1p-126 ? __builtin_convertvector(small, Longs) : code;
  code = magnitude >= 0x1p128 ? Longs{} + 0x7f800000 : code;
  code &= mask;
  code |= code != 0 ? reinterpret_cast<Longs>(value) >> 32 & 0x80000000 : Longs{};
  return __builtin_convertvector(code, HalfInts);
}

Words store(Ints sum, Ints addend, Ints lsb, std::uint32_t mask) {
  const auto low = [](Ints x) { return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7); };
  const auto high = [](Ints x) {
    return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  };
  const HalfInts first = store(low(sum), low(addend), low(lsb), mask);
  const HalfInts second = store(high(sum), high(addend), high(lsb), mask);
  return reinterpret_cast<Words>(
      __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

// One step of a column over `count` values of k.
template <int count, int kept>
Words step(const Operands& x, const int (&ks)[count], int column, Words addend, std::uint32_t mask,
           Ints& special) {
  const Numbers c = decode<8, 23>(addend, special);
  Ints emax = max(c.exponent, Ints{} + kFloor);
  for (const int k : ks) emax = max(emax, x.a[k].exponent + x.exponent[k][column]);
  const Ints lsb = emax - kept;
  Ints sum{};
  for (const int k : ks) {
    sum += cut(x.a[k].significand * x.significand[k][column],
               x.a[k].exponent + x.exponent[k][column] - lsb);
  }
  return store(sum, cut(c.significand, c.exponent - lsb), lsb, mask);
}

template <int count, int stride>
struct Ks {
  int k[count];
  // All of them, or the two of every four from `first` on.
  constexpr explicit Ks(int first) : k{} {
    for (int i = 0; i < count; ++i) k[i] = stride == 1 ? i : i / 2 * 4 + i % 2 + first;
  }
};

template <Type type, Unit unit>
void multiply(Tile& tile) {
  constexpr int K = depth(type);
  constexpr bool fp8 = K == 32;
  Operands x;
  Ints special{};
  constexpr int P = per_register(type);
  for (int q = 0; q < kRegisters; ++q) {
    const Words a = reinterpret_cast<const Words&>(tile.a[q]);
    for (int p = 0; p < P; ++p) x.a[P * q + p] = read<type>(a >> (p * 32 / P), special);
  }
  for (int q = 0; q < kRegisters; q += 2) {  // two registers fill a vector
    const Words both = reinterpret_cast<const Words&>(tile.b[q]);
    for (int p = 0; p < P; ++p) {
      const Numbers b = read<type>(both >> (p * 32 / P), special);
      for (int half = 0; half < 2; ++half) {
        const int k = P * (q + half) + p;
        std::memcpy(x.significand[k], reinterpret_cast<const char*>(&b.significand) + 32 * half,
                    32);
        std::memcpy(x.exponent[k], reinterpret_cast<const char*>(&b.exponent) + 32 * half, 32);
      }
    }
  }
  for (int j = 0; j < kColumns; ++j) {
    const Words c = reinterpret_cast<const Words&>(tile.c[j]);
    Words& d = reinterpret_cast<Words&>(tile.d[j]);
    if constexpr (!fp8) {
      static constexpr Ks<K, 1> all(0);
      d = step<K, 25>(x, all.k, j, c, ~0u, special);
    } else if constexpr (unit == Unit::wgmma) {
      static constexpr Ks<K, 1> all(0);
      d = step<K, 13>(x, all.k, j, c, ~0x3ffu, special);
    } else {
      static constexpr Ks<16, 2> low(0), high(2);
      const Words sum = step<16, 25>(x, low.k, j, Words{}, ~0u, special);
      const Floats both = reinterpret_cast<Floats>(step<16, 25>(x, high.k, j, sum, ~0u, special));
      const Floats result = reinterpret_cast<Floats>(c) + both;
      special |= result != result;
      d = reinterpret_cast<Words>(result);
    }
  }
  std::int32_t any = 0;
  for (int i = 0; i < kRows; ++i) any |= special[i];
  if (any) multiply_reference(type, unit, tile);
}

void multiply_s8(Type type, Tile& tile) {
  for (int j = 0; j < kColumns; ++j) {
    Ints sum{};
    for (int k = 0; k < 32; ++k) {
      const Ints a = reinterpret_cast<const Ints&>(tile.a[k / 4]) << (24 - k % 4 * 8) >> 24;
      sum += a * static_cast<std::int32_t>(static_cast<std::int8_t>(element(type, tile.b, k, j)));
    }
    const Words c = reinterpret_cast<const Words&>(tile.c[j]), s = reinterpret_cast<Words>(sum);
    Words d = c + s;
    if (type == Type::s8_satfinite) {
      const Ints overflow = reinterpret_cast<Ints>(~(c ^ s) & (c ^ d)) < 0;
      d = overflow ? (c >> 31) + 0x7fffffffu : d;
    }
    reinterpret_cast<Words&>(tile.d[j]) = d;
  }
}

}  // namespace

void multiply(Type type, Unit unit, Tile& tile) {
  const bool mma = unit == Unit::mma;
  switch (type) {
    case Type::tf32:
      return multiply<Type::tf32, Unit::mma>(tile);
    case Type::bf16:
      return multiply<Type::bf16, Unit::mma>(tile);
    case Type::fp16:
      return multiply<Type::fp16, Unit::mma>(tile);
    case Type::e4m3:
      return mma ? multiply<Type::e4m3, Unit::mma>(tile) : multiply<Type::e4m3, Unit::wgmma>(tile);
    case Type::e5m2:
      return mma ? multiply<Type::e5m2, Unit::mma>(tile) : multiply<Type::e5m2, Unit::wgmma>(tile);
    case Type::s8:
    case Type::s8_satfinite:
      return multiply_s8(type, tile);
  }
}

}  // namespace numgate::tensor_core
