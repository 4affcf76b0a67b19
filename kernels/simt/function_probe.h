// Runs the elementary functions and the conversions of number formats on given words: digests rest
// on their having the same bits everywhere.
#pragma once
#include <cstdint>

namespace numgate::kernels {

// X(name) of kernels/elementary.h and special_functions.h, Y(name, type of the argument) of
// kernels/formats/formats.h.
// clang-format off
#define NUMGATE_FUNCTIONS(X, Y)                                                                   \
  X(exp) X(normal_reciprocal) X(exp2) X(log2) X(log1p) X(sigmoid) X(softplus) X(silu) X(rsqrt)    \
  X(tanh) X(erf) X(ex2_approx) X(rcp_approx) X(rsqrt_approx) Y(tf32_cut, float)                   \
  Y(tf32_rna, float) Y(tf32_rn, float) Y(bf16_from_float, float)                                  \
  Y(float_from_bf16, std::uint16_t) Y(fp16_from_float, float) Y(float_from_fp16, std::uint16_t)   \
  Y(e4m3_from_float, float) Y(float_from_e4m3, std::uint8_t) Y(e5m2_from_float, float)            \
  Y(float_from_e5m2, std::uint8_t) Y(s8_from_float, float) Y(float_from_s8, std::int8_t)
// clang-format on

enum class Function : std::uint8_t {
#define NUMGATE_NAME(name, ...) name,
  NUMGATE_FUNCTIONS(NUMGATE_NAME, NUMGATE_NAME)
#undef NUMGATE_NAME
};
inline constexpr const char* kFunctionNames[] = {
#define NUMGATE_NAME(name, ...) #name,
    NUMGATE_FUNCTIONS(NUMGATE_NAME, NUMGATE_NAME)
#undef NUMGATE_NAME
};

// The function on this machine's processor. Arguments and results are bits: of a float, or of a
// code in the low end of the word.
std::uint32_t evaluate(Function f, std::uint32_t x);

struct FunctionProbe {
  Function function;
  std::uint32_t count;
  const std::uint32_t* x;  // [count]
  std::uint32_t* y;        // [count]
};

}  // namespace numgate::kernels
