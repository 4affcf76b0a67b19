// What a Hopper tensor core computes, bit for bit (H200).
//
// One step: every product is exact, with exponent ea + eb and its significand not normalised; all
// terms of the step, the addend among them, are cut toward zero at 2^(emax - F), where emax is the
// largest exponent of them all and at least -133; the sum is exact and is stored toward zero.
#pragma once
#include <cstdint>

namespace numgate::tensor_core {

enum class Type : std::uint8_t { tf32, bf16, fp16, e4m3, e5m2, s8, s8_satfinite };

// The instruction: they differ for e4m3 and e5m2. wgmma has its own fp8 path (F = 13), while
// mma.sync is compiled to two fp16 steps, over k % 4 < 2 and then the rest, and an ordinary
// addition of C.
enum class Unit : std::uint8_t { mma, wgmma };

constexpr const char* name(Type t) {
  constexpr const char* kNames[] = {"tf32", "bf16", "fp16", "e4m3", "e5m2", "s8", "s8.satfinite"};
  return kNames[static_cast<int>(t)];
}
constexpr bool is_integer(Type t) { return t >= Type::s8; }

inline constexpr int kRows = 16, kColumns = 8, kMaxDepth = 32;

constexpr int depth(Type t) {
  return t == Type::tf32 ? 8 : t == Type::bf16 || t == Type::fp16 ? 16 : 32;
}

// Elements that share a 32-bit register of a fragment, neighbours in k; a tile has 8 such registers
// along k.
inline constexpr int kRegisters = 8;
constexpr int per_register(Type t) { return depth(t) / kRegisters; }

// Raw bits. A and the accumulators are stored by column, so that rows run side by side.
struct Tile {
  alignas(64) std::uint32_t a[kRegisters][kRows];
  alignas(64) std::uint32_t b[kRegisters][kColumns];
  alignas(64) std::uint32_t c[kColumns][kRows];
  alignas(64) std::uint32_t d[kColumns][kRows];
};

// Element k of the registers along k, `row` being a row of A or a column of B.
template <int width>
constexpr std::uint32_t element(Type t, const std::uint32_t (&registers)[kRegisters][width], int k,
                                int row) {
  const int n = per_register(t), bits = 32 / n;
  return registers[k / n][row] >> (k % n * bits) & (0xffffffffu >> (32 - bits));
}

// Sets the bits of an element that is zero.
template <int width>
constexpr void place(Type t, std::uint32_t (&registers)[kRegisters][width], int k, int row,
                     std::uint32_t raw) {
  const int n = per_register(t);
  registers[k / n][row] |= raw << (k % n * (32 / n));
}

// D = A B + C as an H200 computes it.
void multiply(Type type, Unit unit, Tile& tile);

// What generations of tensor cores differ in. A step takes `products` of the tile's; the result of
// one is the addend of the next.
struct Rules {
  enum class Order : std::uint8_t { sequence, pairs_first };  // pairs_first: k % 4 < 2, the rest
  enum class Addend : std::uint8_t { first, last };  // last: an fp32 addition to nearest even
  enum class Cut : std::uint8_t { toward_zero, floor };
  enum class Rounding : std::uint8_t { toward_zero, nearest_even };

  int fraction_bits;  // F: terms are cut at 2^(emax - F)
  int products;
  Order order;
  Addend addend;
  Cut cut;
  Rounding rounding;   // of a step's result
  int stored_bits;     // fraction bits of a step's result
  int exponent_floor;  // the least emax
  bool reads_as_fp16;  // operands are normalised as fp16 first (e4m3)

  bool operator==(const Rules&) const = default;
};

// Those of an H200. The integer types have none: they are exact.
Rules hopper_rules(Type type, Unit unit);

// An element of D by integer arithmetic.
std::uint32_t output(Type type, const Rules& rules, const Tile& tile, int row, int column);
// D = A B + C by integer arithmetic, element by element.
void multiply_reference(Type type, const Rules& rules, Tile& tile);
void multiply_reference(Type type, Unit unit, Tile& tile);

}  // namespace numgate::tensor_core
