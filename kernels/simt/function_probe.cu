#include "kernels/simt/function_probe.h"

#include <type_traits>

#include "kernels/elementary.h"
#include "kernels/formats/formats.h"
#include "kernels/simt/probes.cuh"

namespace numgate::kernels {
namespace NUMGATE_BACKEND {
namespace {

template <class T>
__host__ __device__ inline T from_word(std::uint32_t word) {
  if constexpr (std::is_same_v<T, float>)
    return formats::detail::from_bits(word);
  else
    return static_cast<T>(word);
}
template <class T>
__host__ __device__ inline std::uint32_t to_word(T y) {
  if constexpr (std::is_same_v<T, float>)
    return formats::detail::bits(y);
  else
    return static_cast<std::make_unsigned_t<T>>(y);
}

__host__ __device__ inline std::uint32_t value_of(Function f, std::uint32_t x) {
  switch (f) {
#define NUMGATE_ELEMENTARY_CASE(name) \
  case Function::name:                \
    return to_word(elementary::name(from_word<float>(x)));
#define NUMGATE_CONVERSION_CASE(name, Argument) \
  case Function::name:                          \
    return to_word(formats::name(from_word<Argument>(x)));
    NUMGATE_FUNCTIONS(NUMGATE_ELEMENTARY_CASE, NUMGATE_CONVERSION_CASE)
#undef NUMGATE_ELEMENTARY_CASE
#undef NUMGATE_CONVERSION_CASE
  }
  return 0;
}

__global__ void function_probe(FunctionProbe p) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < p.count;
       i += gridDim.x * blockDim.x)
    p.y[i] = value_of(p.function, p.x[i]);
}

}  // namespace

void launch_probe(const FunctionProbe& p, simt::Stream stream) {
  simt::launch("function_probe", 512, 128, 0, stream, function_probe, p);
}

}  // namespace NUMGATE_BACKEND

#ifndef __CUDACC__
std::uint32_t evaluate(Function f, std::uint32_t x) { return cpu::value_of(f, x); }
#endif

}  // namespace numgate::kernels
