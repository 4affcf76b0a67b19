// What lets one text be compiled by g++ and, for host and device, by nvcc.
#pragma once

#if defined(__CUDACC__)
#define NUMGATE_HOST_DEVICE __host__ __device__
#define NUMGATE_UNROLL _Pragma("unroll")
#define NUMGATE_NOINLINE __noinline__  // of what would otherwise swell its callers on a device
#else
#define NUMGATE_HOST_DEVICE
#define NUMGATE_UNROLL
#define NUMGATE_NOINLINE
#endif
#define NUMGATE_INLINE NUMGATE_HOST_DEVICE inline __attribute__((always_inline))
