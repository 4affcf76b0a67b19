// One warp multiplies a 16 x k tile by a k x 8 tile, in the format of a dot.
#pragma once
#include "kernels/kda/elements.cuh"
#include "kernels/simt/mma.h"

namespace numgate::kernels::NUMGATE_BACKEND {

using simt::mma_m16n8k16_bf16;
using simt::mma_m16n8k16_fp16;
using simt::mma_m16n8k8_tf32;

inline constexpr int kSquare = kChunk + 4;  // row pitch of 64 x 64 fp32 matrices in shared memory

// Row and columns of the four accumulators of this lane (the layout of mma.sync's D).
struct Lane {
  int id, row, pair;  // rows `row` and `row + 8`, columns 2 `pair` and 2 `pair` + 1
  __device__ Lane() : id(threadIdx.x % 32), row(threadIdx.x % 32 / 4), pair(threadIdx.x % 4) {}
};

template <class Convert>
__device__ __forceinline__ std::uint32_t pack(float low, float high, Convert convert) {
  return pack2(convert(low), convert(high));
}

// acc += A B over k in [begin, end), multiples of 16. a(row, k) with rows 0..15, b(k, column) with
// columns 0..7. ieee: one fp32 fma chain in ascending k. Else the tensor core, in ascending k
// steps; the x3 schemes issue lo*hi, hi*lo, hi*hi in each step, small terms first.
template <class A, class B>
__device__ __forceinline__ void dot_tile(Format f, float (&acc)[4], A a, B b, int begin, int end) {
  const Lane l;
  const int r = l.row, p = l.pair;
  switch (f) {
    case Format::tf32:
    case Format::tf32rna:
    case Format::tf32x3:
      for (int k = begin; k < end; k += 8) {
        const float av[4] = {a(r, k + p), a(r + 8, k + p), a(r, k + p + 4), a(r + 8, k + p + 4)};
        const float bv[2] = {b(k + p, r), b(k + p + 4, r)};
        std::uint32_t ah[4], al[4], bh[2], bl[2];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float hi = f == Format::tf32rna ? tf32_rna(av[i]) : tf32_cut(av[i]);
          ah[i] = __float_as_uint(hi), al[i] = __float_as_uint(tf32_cut(av[i] - hi));
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float hi = f == Format::tf32rna ? tf32_rna(bv[i]) : tf32_cut(bv[i]);
          bh[i] = __float_as_uint(hi), bl[i] = __float_as_uint(tf32_cut(bv[i] - hi));
        }
        if (f == Format::tf32x3) {
          mma_m16n8k8_tf32(acc, al, bh, acc);
          mma_m16n8k8_tf32(acc, ah, bl, acc);
        }
        mma_m16n8k8_tf32(acc, ah, bh, acc);
      }
      return;
    case Format::bf16:
    case Format::bf16x3:
    case Format::fp16:
      for (int k = begin; k < end; k += 16) {
        const int c = k + 2 * p;
        float av[8] = {a(r, c),     a(r, c + 1), a(r + 8, c),     a(r + 8, c + 1),
                       a(r, c + 8), a(r, c + 9), a(r + 8, c + 8), a(r + 8, c + 9)};
        float bv[4] = {b(c, r), b(c + 1, r), b(c + 8, r), b(c + 9, r)};
        std::uint32_t ah[4], bh[2];
        if (f == Format::fp16) {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            ah[i] = pack(av[2 * i], av[2 * i + 1], [](float x) { return fp16_from_float(x); });
#pragma unroll
          for (int i = 0; i < 2; ++i)
            bh[i] = pack(bv[2 * i], bv[2 * i + 1], [](float x) { return fp16_from_float(x); });
          mma_m16n8k16_fp16(acc, ah, bh, acc);
          continue;
        }
        const auto bf16 = [](float x) { return bf16_from_float(x); };
#pragma unroll
        for (int i = 0; i < 4; ++i) ah[i] = pack(av[2 * i], av[2 * i + 1], bf16);
#pragma unroll
        for (int i = 0; i < 2; ++i) bh[i] = pack(bv[2 * i], bv[2 * i + 1], bf16);
        if (f == Format::bf16x3) {
          std::uint32_t al[4], bl[2];
          const auto low = [](float x) {
            return bf16_from_float(x - float_from_bf16(bf16_from_float(x)));
          };
#pragma unroll
          for (int i = 0; i < 4; ++i) al[i] = pack(av[2 * i], av[2 * i + 1], low);
#pragma unroll
          for (int i = 0; i < 2; ++i) bl[i] = pack(bv[2 * i], bv[2 * i + 1], low);
          mma_m16n8k16_bf16(acc, al, bh, acc);
          mma_m16n8k16_bf16(acc, ah, bl, acc);
        }
        mma_m16n8k16_bf16(acc, ah, bh, acc);
      }
      return;
    default:
      for (int k = begin; k < end; ++k) {
        const float a0 = a(r, k), a1 = a(r + 8, k), b0 = b(k, 2 * p), b1 = b(k, 2 * p + 1);
        acc[0] = fmaf(a0, b0, acc[0]);
        acc[1] = fmaf(a0, b1, acc[1]);
        acc[2] = fmaf(a1, b0, acc[2]);
        acc[3] = fmaf(a1, b1, acc[3]);
      }
  }
}

// Sum over the warp by an xor butterfly, the same value in every lane.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
