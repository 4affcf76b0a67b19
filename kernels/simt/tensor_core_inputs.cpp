#include "kernels/simt/tensor_core_inputs.h"

#include <algorithm>
#include <bit>
#include <random>

#include "kernels/formats/formats.h"

namespace numgate::tensor_core {
namespace {

struct Layout {
  int exponent_bits, fraction_bits;
  int unused = 0;  // low bits that the tensor core does not read
  int codes = 0;   // of the largest exponent, that are numbers

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int min_exponent() const { return 1 - bias(); }
  int max_exponent() const { return bias() + (codes ? 1 : 0); }
  std::uint32_t sign() const { return 1u << (exponent_bits + fraction_bits + unused); }
};

constexpr Layout kFp32{8, 23};

Layout layout(Type type) {
  switch (type) {
    case Type::tf32:
      return {8, 10, 13};
    case Type::bf16:
      return {8, 7};
    case Type::fp16:
      return {5, 10};
    case Type::e4m3:
      return {4, 3, 0, 7};
    default:
      return {5, 2};
  }
}

double value(Type type, std::uint32_t raw) {
  switch (type) {
    case Type::tf32:
      return formats::tf32_cut(std::bit_cast<float>(raw));
    case Type::bf16:
      return formats::float_from_bf16(static_cast<std::uint16_t>(raw));
    case Type::fp16:
      return formats::float_from_fp16(static_cast<std::uint16_t>(raw));
    case Type::e4m3:
      return formats::float_from_e4m3(static_cast<std::uint8_t>(raw));
    default:
      return formats::float_from_e5m2(static_cast<std::uint8_t>(raw));
  }
}

// Random words of one group.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::uint32_t bits(int n) { return static_cast<std::uint32_t>(random_() >> (64 - n)); }
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }
  bool one_in(int n) { return between(1, n) == 1; }

  // A normal number of either sign whose exponent is `exponent` as far as the format goes.
  // Fractions of all zeros and all ones are frequent: they are where carries and ties are.
  std::uint32_t number(const Layout& f, int exponent) {
    exponent = std::clamp(exponent, f.min_exponent(), f.max_exponent());
    const std::uint32_t ones = (1u << f.fraction_bits) - 1;
    std::uint32_t fraction = one_in(8) ? 0 : one_in(7) ? ones : bits(f.fraction_bits);
    if (f.codes && exponent == f.max_exponent())
      fraction = std::min(fraction, static_cast<std::uint32_t>(f.codes - 1));
    return with_sign(f, exponent, fraction);
  }
  std::uint32_t power_of_two(const Layout& f, int exponent) { return with_sign(f, exponent, 0); }
  std::uint32_t subnormal(const Layout& f) {
    const std::uint32_t fraction = bits(f.fraction_bits) >> between(0, f.fraction_bits - 1);
    return with_sign(f, f.min_exponent() - 1, std::max(fraction, 1u));
  }
  std::uint32_t zero(const Layout& f) { return with_sign(f, f.min_exponent() - 1, 0); }

 private:
  std::uint32_t with_sign(const Layout& f, int exponent, std::uint32_t fraction) {
    const auto field = static_cast<std::uint32_t>(exponent + f.bias()) << f.fraction_bits;
    const std::uint32_t unused = f.unused ? bits(f.unused) : 0;
    return (field | fraction) << f.unused | unused | (one_in(2) ? f.sign() : 0);
  }

  std::mt19937_64 random_;
};

// Raw elements of a group.
struct Group {
  std::uint32_t a[kGroup * kRows][kMaxDepth], b[kColumns][kMaxDepth], c[kGroup * kRows][kColumns];
};

class FloatGroup {
 public:
  FloatGroup(Type type, InputClass of, Draw& draw)
      : type_(type),
        of_(of),
        draw_(draw),
        format_(layout(type)),
        wide_(format_.exponent_bits == 8) {}

  void fill(Group& g) {
    for (auto& row : g.a) each(row, [&] { return operand(false); });
    for (auto& column : g.b) each(column, [&] { return operand(true); });
    const bool half = draw_.one_in(2);
    const bool floor = of_ == InputClass::near_floor && wide_ && half;
    const bool cancels = of_ == InputClass::near_cut && half;
    const int first = draw_.between(0, depth(type_) - 1);
    const int second = (first + draw_.between(1, depth(type_) - 1)) % depth(type_);
    if (floor) two_products_at_the_floor(g, first, second);
    if (cancels) two_products_that_cancel(g, first, second);
    for (int row = 0; row < kGroup * kRows; ++row)
      for (int column = 0; column < kColumns; ++column)
        g.c[row][column] = floor ? draw_.zero(kFp32) : addend(g.a[row][0], g.b[column][0]);
  }

 private:
  template <class F>
  void each(std::uint32_t (&row)[kMaxDepth], F f) {
    for (int k = 0; k < depth(type_); ++k) row[k] = f();
  }

  std::uint32_t operand(bool of_b) {
    switch (of_) {
      case InputClass::plain:
        return draw_.number(format_, draw_.between(-3, 3));
      case InputClass::wide_exponents:
        return draw_.number(
            format_, wide_ && draw_.one_in(2) ? draw_.between(-126, 127) : draw_.between(-30, 30));
      case InputClass::near_cut:
        return draw_.number(format_, 6 - draw_.between(0, 14));
      case InputClass::dominating_addend:
        return draw_.number(format_, draw_.between(-4, 4));
      case InputClass::raw_bits:
        return draw_.bits(1 + format_.exponent_bits + format_.fraction_bits + format_.unused);
      case InputClass::near_floor:
        if (!wide_)
          return draw_.one_in(2) ? draw_.subnormal(format_)
                                 : draw_.number(format_, draw_.between(-20, -4));
        if (draw_.one_in(16))
          return draw_.number(format_, of_b ? draw_.between(-126, -100) : draw_.between(-40, -10));
        return draw_.number(format_, draw_.between(-88, -58));
      default:
        return draw_.between(1, 5) <= 3
                   ? draw_.zero(format_)
                   : draw_.number(format_, wide_ ? draw_.between(-60, 60) : draw_.between(-14, 15));
    }
  }

  // C where a and b are the operands of the element's first product.
  std::uint32_t addend(std::uint32_t a, std::uint32_t b) {
    switch (of_) {
      case InputClass::plain:
        return draw_.number(kFp32, draw_.between(-3, 5));
      case InputClass::wide_exponents:
        return draw_.number(kFp32, draw_.between(-40, 40));
      case InputClass::near_cut:
        return draw_.one_in(3) ? draw_.zero(kFp32) : draw_.number(kFp32, 12 - draw_.between(0, 34));
      case InputClass::dominating_addend:
        return draw_.one_in(3) ? std::bit_cast<std::uint32_t>(
                                     static_cast<float>(-value(type_, a) * value(type_, b)))
                               : draw_.number(kFp32, draw_.between(10, 34));
      case InputClass::raw_bits:
        return draw_.bits(32);
      case InputClass::near_floor:
        return draw_.one_in(2) ? draw_.zero(kFp32) : draw_.subnormal(kFp32);
      default:
        return draw_.one_in(3) ? draw_.zero(kFp32) : draw_.number(kFp32, draw_.between(-10, 10));
    }
  }

  // All that is not zero: 2^-149, and a far smaller product of the other sign. Whether it is lost
  // says where the grid ends.
  void two_products_at_the_floor(Group& g, int first, int second) {
    for (auto& column : g.b)
      each(column, [&] { return draw_.power_of_two(format_, -100) & ~format_.sign(); });
    for (auto& row : g.a) {
      each(row, [&] { return 0u; });
      row[first] = draw_.power_of_two(format_, -49);
      const std::uint32_t small = draw_.power_of_two(format_, -draw_.between(50, 76));
      row[second] = (small & ~format_.sign()) | (~row[first] & format_.sign());
    }
  }

  // The two largest products cancel, which leaves what was cut off the others.
  void two_products_that_cancel(Group& g, int first, int second) {
    for (auto& column : g.b) column[second] = column[first] = draw_.number(format_, 6);
    for (auto& row : g.a) {
      row[first] = draw_.number(format_, 6);
      row[second] = row[first] ^ format_.sign();
    }
  }

  Type type_;
  InputClass of_;
  Draw& draw_;
  Layout format_;
  bool wide_;  // exponents as fp32's
};

void fill_integers(InputClass of, Draw& draw, Group& g) {
  const auto operand = [&]() -> std::uint32_t {
    switch (of) {
      case InputClass::plain:
        return static_cast<std::uint32_t>(draw.between(-15, 15)) & 0xff;
      case InputClass::wide_exponents:
        return draw.bits(8) >> draw.between(0, 7);
      case InputClass::near_floor:
        return draw.one_in(2) ? 0x80 : 0x7f;
      case InputClass::signed_zeros:
        return draw.one_in(4) ? draw.bits(8) : 0;
      default:
        return draw.bits(8);
    }
  };
  const auto addend = [&]() -> std::uint32_t {
    switch (of) {
      case InputClass::plain:
        return static_cast<std::uint32_t>(draw.between(-999, 999));
      case InputClass::near_cut:
      case InputClass::near_floor:
        return draw.one_in(2) ? 0x7fffffffu - draw.bits(18) : 0x80000000u + draw.bits(18);
      case InputClass::signed_zeros:
        return 0;
      default:
        return draw.bits(32);
    }
  };
  for (auto& row : g.a) std::generate_n(row, kMaxDepth, operand);
  for (auto& column : g.b) std::generate_n(column, kMaxDepth, operand);
  for (auto& row : g.c) std::generate_n(row, kColumns, addend);
}

}  // namespace

const char* name(InputClass c) {
  constexpr const char* kNames[] = {
      "plain",    "wide_exponents", "near_cut",    "dominating_addend",
      "raw_bits", "near_floor",     "signed_zeros"};
  return kNames[static_cast<int>(c)];
}

std::vector<Tile> input_tiles(Type type, int count) {
  std::vector<Tile> tiles(static_cast<std::size_t>(count));
#pragma omp parallel for schedule(static)
  for (int first = 0; first < count; first += kGroup) {
    Draw draw((static_cast<std::uint64_t>(type) << 32) + static_cast<std::uint64_t>(first));
    const InputClass of = input_class(first);
    Group g;
    if (is_integer(type))
      fill_integers(of, draw, g);
    else
      FloatGroup(type, of, draw).fill(g);
    for (int i = 0; i < kGroup; ++i) {
      Tile& tile = tiles[static_cast<std::size_t>(first + i)];
      for (int row = 0; row < kRows; ++row) {
        for (int k = 0; k < depth(type); ++k) place(type, tile.a, k, row, g.a[i * kRows + row][k]);
        for (int j = 0; j < kColumns; ++j) tile.c[j][row] = g.c[i * kRows + row][j];
      }
      for (int j = 0; j < kColumns; ++j)
        for (int k = 0; k < depth(type); ++k) place(type, tile.b, k, j, g.b[j][k]);
    }
  }
  return tiles;
}

}  // namespace numgate::tensor_core
