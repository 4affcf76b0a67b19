// Elements in memory: loads of inputs, stores in a site's format, and what rounding to a format
// means.
#pragma once
#include "kernels/formats/formats.h"
#include "kernels/kda/kda.h"
#include "kernels/simt/simt.h"

namespace numgate::kernels::NUMGATE_BACKEND {

using namespace formats;

// Formats by site, chosen at run time (CPU: any plan; CUDA: variants of the named plans).
struct RuntimePlan {
  Format formats[kSiteCount];
  __host__ __device__ Format operator[](Site s) const { return formats[static_cast<int>(s)]; }
};

// A named plan at compile time.
enum class Named { reference, production, tf32 };
template <Named N>
struct StaticPlan {
  __host__ __device__ constexpr Format operator[](Site s) const {
    constexpr Formats f = N == Named::reference    ? reference_formats()
                          : N == Named::production ? production_formats()
                                                   : production_formats(Format::tf32, Format::tf32);
    return f[static_cast<std::size_t>(s)];
  }
};

__device__ __forceinline__ float round_to(Format f, float x) {
  switch (f) {
    case Format::bf16:
      return float_from_bf16(bf16_from_float(x));
    case Format::fp16:
      return float_from_fp16(fp16_from_float(x));
    case Format::tf32:
      return tf32_cut(x);
    case Format::tf32rna:
      return tf32_rna(x);
    default:
      return x;
  }
}

// N consecutive elements in format f, starting at element `index`.
template <int N>
__device__ __forceinline__ void load_elements(const void* p, std::int64_t index, Format f,
                                              float (&x)[N]) {
  if (store_bytes(f) == 2) {
    const std::uint16_t* h = static_cast<const std::uint16_t*>(p) + index;
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const std::uint32_t pair = simt::load_pair(h, i);
      const auto low = static_cast<std::uint16_t>(pair),
                 high = static_cast<std::uint16_t>(pair >> 16);
      x[i] = f == Format::bf16 ? float_from_bf16(low) : float_from_fp16(low);
      x[i + 1] = f == Format::bf16 ? float_from_bf16(high) : float_from_fp16(high);
    }
  } else {
    const float* s = static_cast<const float*>(p) + index;
    if constexpr (N % 4 == 0) {
#pragma unroll
      for (int i = 0; i < N; i += 4) {
        const float4 v = simt::load4(s, i);
        x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) x[i] = s[i];
    }
  }
}

// `rows` rows of `columns` elements in format f from element `first` on, by all of the block's
// threads.
template <int rows, int columns, int threads>
__device__ __forceinline__ void load_matrix(simt::Shared<float> to, int pitch, const void* from,
                                            std::int64_t first, Format f) {
  for (int at = threadIdx.x * 4; at < rows * columns; at += threads * 4) {
    float x[4];
    load_elements<4>(from, first + at, f, x);
    simt::store4(to, at / columns * pitch + at % columns, make_float4(x[0], x[1], x[2], x[3]));
  }
}

template <int N>
__device__ __forceinline__ void store_elements(void* p, std::int64_t index, Format f,
                                               const float (&x)[N]) {
  if (store_bytes(f) == 2) {
    std::uint16_t* h = static_cast<std::uint16_t*>(p) + index;
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const std::uint16_t low = f == Format::bf16 ? bf16_from_float(x[i]) : fp16_from_float(x[i]);
      const std::uint16_t high =
          f == Format::bf16 ? bf16_from_float(x[i + 1]) : fp16_from_float(x[i + 1]);
      simt::store_pair(h, i, pack2(low, high));
    }
  } else {
    float* s = static_cast<float*>(p) + index;
    if constexpr (N % 4 == 0) {
#pragma unroll
      for (int i = 0; i < N; i += 4)
        simt::store4(s, i,
                     make_float4(round_to(f, x[i]), round_to(f, x[i + 1]), round_to(f, x[i + 2]),
                                 round_to(f, x[i + 3])));
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) s[i] = round_to(f, x[i]);
    }
  }
}

__device__ __forceinline__ void store_element(void* p, std::int64_t index, Format f, float x) {
  if (f == Format::bf16)
    static_cast<std::uint16_t*>(p)[index] = bf16_from_float(x);
  else if (f == Format::fp16)
    static_cast<std::uint16_t*>(p)[index] = fp16_from_float(x);
  else
    static_cast<float*>(p)[index] = round_to(f, x);
}

__device__ __forceinline__ float load_element(const void* p, std::int64_t index, Dtype in) {
  return in == Dtype::bf16 ? float_from_bf16(static_cast<const std::uint16_t*>(p)[index])
                           : static_cast<const float*>(p)[index];
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
