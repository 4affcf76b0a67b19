// What lets one text be compiled by g++ and, for host and device, by nvcc.
#pragma once

#if defined(__CUDACC__)
#define NUMGATE_HOST_DEVICE __host__ __device__
#define NUMGATE_UNROLL _Pragma("unroll")
#else
#define NUMGATE_HOST_DEVICE
#define NUMGATE_UNROLL
#endif
#define NUMGATE_INLINE NUMGATE_HOST_DEVICE inline __attribute__((always_inline))
