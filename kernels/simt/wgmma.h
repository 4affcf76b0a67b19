// Warpgroup products of Hopper, D = A B + D with D 64 x 8: A in the registers of 128 threads, of
// which warp w holds rows 16 w to 16 w + 15 in the fragment layout of mma.sync, and so D; B in
// shared memory, to which a descriptor points. Only an image for sm_90a has them: where
// NUMGATE_WGMMA is not defined there are none.
//
// Call wgmma_fence, any number of products, wgmma_wait with the registers of D.
#pragma once
#include <cstdint>

#include "kernels/simt/simt.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define NUMGATE_WGMMA

namespace numgate::simt {
inline namespace NUMGATE_BACKEND {

// Of B with 8 columns and 32 bytes along k, not swizzled: two core matrices of 8 columns x 16 bytes
// along k, `b` and `b` + 128 bytes, one column's 16 bytes after the other's.
__device__ __forceinline__ std::uint64_t wgmma_descriptor(const void* b) {
  constexpr std::uint64_t kStep = 128 >> 4;  // between core matrices, in units of 16 bytes
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(b));
  return (address & 0x3ffff) >> 4 | kStep << 16 | kStep << 32;
}

// Before the first product, after B and the registers were written and the threads have met.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// Makes what this thread wrote to shared memory visible to wgmma; before the threads meet.
__device__ __forceinline__ void wgmma_publish() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ __forceinline__ void wgmma_wait(std::uint32_t* d) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])::"memory");
}

// The registers of D are words: their bits are fp32 or int32. `scales` are the factors of A and B
// and, for 16-bit types, whether B is transposed.
#define NUMGATE_WGMMA_FORM(name, instruction, scales)                            \
  __device__ __forceinline__ void name(std::uint32_t* d, const std::uint32_t* a, \
                                       std::uint64_t b) {                        \
    asm volatile(                                                                \
        "{ .reg .pred add;\nsetp.ne.u32 add, 1, 0;\n"                            \
        "wgmma.mma_async.sync.aligned." instruction                              \
        " {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, add" scales ";\n}"                   \
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                         \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                   \
  }

NUMGATE_WGMMA_FORM(wgmma_m64n8k8_tf32, "m64n8k8.f32.tf32.tf32", ", 1, 1")
NUMGATE_WGMMA_FORM(wgmma_m64n8k16_bf16, "m64n8k16.f32.bf16.bf16", ", 1, 1, 0")
NUMGATE_WGMMA_FORM(wgmma_m64n8k16_fp16, "m64n8k16.f32.f16.f16", ", 1, 1, 0")
NUMGATE_WGMMA_FORM(wgmma_m64n8k32_e4m3, "m64n8k32.f32.e4m3.e4m3", ", 1, 1")
NUMGATE_WGMMA_FORM(wgmma_m64n8k32_e5m2, "m64n8k32.f32.e5m2.e5m2", ", 1, 1")
NUMGATE_WGMMA_FORM(wgmma_m64n8k32_s8, "m64n8k32.s32.s8.s8", "")
NUMGATE_WGMMA_FORM(wgmma_m64n8k32_s8_satfinite, "m64n8k32.s32.s8.s8.satfinite", "")

#undef NUMGATE_WGMMA_FORM

}  // namespace NUMGATE_BACKEND
}  // namespace numgate::simt

#endif
