// The number formats that a site can declare.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace numgate {

// As a *store* a format says how one value is rounded; as a *dot* it says what the operands become
// and which unit multiplies them: ieee is a chain of fp32 fused multiply-adds, everything else runs
// on the tensor core with fp32 accumulation.
enum class Format : std::uint8_t {
  ieee,     // fp32, round to nearest even
  tf32,     // operands cut to 10 fraction bits toward zero, as the tensor core reads them
  tf32rna,  // operands rounded to 10 fraction bits, ties away (cvt.rna.tf32.f32), then the tensor
            // core
  tf32x3,   // hi + lo, both cut; hi*hi + hi*lo + lo*hi on the tensor core
  diag_tf32x3,  // site `summary.chain` only: decay as a fp32 diagonal, the low-rank part in
                // tf32x3
  bf16,         // round to nearest even
  bf16x3,       // hi + lo in bf16; hi*hi + hi*lo + lo*hi on the tensor core
  fp16,         // round to nearest even
  input,        // the element type of the case's inputs (site `output` only)
};

struct FormatInfo {
  Format format;
  std::string_view name;
  int fraction_bits;  // explicit fraction bits of one operand
  int min_exponent;   // exponent of the smallest normal number
  int max_exponent;   // exponent of the largest finite number
  bool truncates;     // rounds toward zero rather than to nearest
  int products;       // products per step of the tensor core, 0 where there is none
  int pieces;         // operand pieces (3 for the x3 schemes: hi*hi, hi*lo, lo*hi)
};

inline constexpr std::array<FormatInfo, 9> kFormats{{
    {Format::ieee, "ieee", 23, -126, 127, false, 0, 1},
    {Format::tf32, "tf32", 10, -126, 127, true, 8, 1},
    {Format::tf32rna, "tf32rna", 10, -126, 127, false, 8, 1},
    {Format::tf32x3, "tf32x3", 10, -126, 127, true, 8, 3},
    {Format::diag_tf32x3, "diag_tf32x3", 10, -126, 127, true, 8, 3},
    {Format::bf16, "bf16", 7, -126, 127, false, 16, 1},
    {Format::bf16x3, "bf16x3", 7, -126, 127, false, 16, 3},
    {Format::fp16, "fp16", 10, -14, 15, false, 16, 1},
    {Format::input, "input", 0, 0, 0, false, 0, 1},
}};

constexpr const FormatInfo& info(Format f) { return kFormats[static_cast<std::size_t>(f)]; }
constexpr std::string_view name(Format f) { return info(f).name; }

// Raises UsageError for a name that is not in the table.
Format parse_format(std::string_view text);

}  // namespace numgate
