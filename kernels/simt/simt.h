// One kernel source, two backends. Kernels are CUDA C++ in .cu files. nvcc compiles them as they
// are; g++ compiles the same text against an emulation in which a block's threads are fibers.
//
// Beyond plain CUDA a kernel uses
//   NUMGATE_SHARED(type, name, count)           a static shared array
//   simt::dynamic_shared<T>(byte_offset, count) a part of the dynamic shared memory
//   simt::Shared<T>                             what both of these are (T* on CUDA, bounds-checked
//   on the CPU) simt::load4, store4, load_pair, store_pair  16-byte and 2 x 16-bit accesses
//   kernels/simt/mma.h                          warp-wide tensor-core products
//   kernels/simt/load_matrix.h                  their fragments from shared memory (ldmatrix)
//   kernels/simt/async_copy.h                   copies to shared memory that are waited for
//   (cp.async)
// and lives in namespace numgate::kernels::NUMGATE_BACKEND. Host code launches it by simt::launch.
#pragma once

#if defined(__CUDACC__)
#define NUMGATE_BACKEND cuda
#include "kernels/simt/cuda.h"
#else
#define NUMGATE_BACKEND cpu
#include "kernels/simt/cpu.h"
#endif
