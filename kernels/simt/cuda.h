// simt.h under nvcc: thin names over CUDA.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/errors.h"

#define NUMGATE_SHARED(type, name, count) __shared__ __align__(16) type name[count]

namespace numgate::simt {
inline namespace cuda {

using Stream = cudaStream_t;

template <class T>
using Shared = T*;

inline void set_schedule_seed(std::uint64_t) {}  // the hardware schedules

inline void check(const char* name, cudaError_t status) {
  if (status != cudaSuccess) {
    throw KernelError("kernel '" + std::string(name) + "': " + cudaGetErrorString(status));
  }
}

template <class... Params, class... Args>
void launch(const char* name, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes,
            Stream stream, void (*kernel)(Params...), Args&&... args) {
  if (dynamic_shared_bytes > 48 * 1024) {
    check(name, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(dynamic_shared_bytes)));
  }
  kernel<<<grid, block, dynamic_shared_bytes, stream>>>(static_cast<Params>(args)...);
  check(name, cudaGetLastError());
}

inline void synchronize(Stream stream) { check("synchronize", cudaStreamSynchronize(stream)); }

#if defined(__CUDACC__)
template <class T>
__device__ __forceinline__ T* dynamic_shared(std::size_t byte_offset, std::size_t /*count*/) {
  extern __shared__ __align__(128) unsigned char numgate_dynamic_shared[];
  return reinterpret_cast<T*>(numgate_dynamic_shared + byte_offset);
}

__device__ __forceinline__ float2 load2(const float* p, std::size_t i) {
  return *reinterpret_cast<const float2*>(p + i);
}
__device__ __forceinline__ float4 load4(const float* p, std::size_t i) {
  return *reinterpret_cast<const float4*>(p + i);
}
__device__ __forceinline__ uint4 load4(const std::uint32_t* p, std::size_t i) {
  return *reinterpret_cast<const uint4*>(p + i);
}
__device__ __forceinline__ void store4(float* p, std::size_t i, float4 v) {
  *reinterpret_cast<float4*>(p + i) = v;
}
__device__ __forceinline__ void store4(std::uint32_t* p, std::size_t i, uint4 v) {
  *reinterpret_cast<uint4*>(p + i) = v;
}
// Four 16-bit elements.
__device__ __forceinline__ uint2 load_four(const std::uint16_t* p, std::size_t i) {
  return *reinterpret_cast<const uint2*>(p + i);
}
__device__ __forceinline__ void store_four(std::uint16_t* p, std::size_t i, uint2 v) {
  *reinterpret_cast<uint2*>(p + i) = v;
}
// Eight 16-bit elements.
__device__ __forceinline__ uint4 load8(const std::uint16_t* p, std::size_t i) {
  return *reinterpret_cast<const uint4*>(p + i);
}
__device__ __forceinline__ void store8(std::uint16_t* p, std::size_t i, uint4 v) {
  *reinterpret_cast<uint4*>(p + i) = v;
}
__device__ __forceinline__ void store2(float* p, std::size_t i, float2 v) {
  *reinterpret_cast<float2*>(p + i) = v;
}
// Two 16-bit elements as one register, the lower index in the low half.
__device__ __forceinline__ std::uint32_t load_pair(const std::uint16_t* p, std::size_t i) {
  return *reinterpret_cast<const std::uint32_t*>(p + i);
}
__device__ __forceinline__ void store_pair(std::uint16_t* p, std::size_t i, std::uint32_t v) {
  *reinterpret_cast<std::uint32_t*>(p + i) = v;
}
#endif

}  // namespace cuda
}  // namespace numgate::simt
