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

// D = A B + C.
void multiply(Type type, Unit unit, Tile& tile);
// The same bits by integer arithmetic, element by element.
void multiply_reference(Type type, Unit unit, Tile& tile);

}  // namespace numgate::tensor_core
