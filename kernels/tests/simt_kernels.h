// Kernels that the tests of the SIMT runtime launch.
#pragma once
#include <cstdint>

#include "kernels/simt/simt.h"

namespace numgate::kernels::NUMGATE_BACKEND {

// Sums each block's values by shuffles and shared memory; `barrier` false leaves one barrier out.
__global__ void reduce(const float* in, float* out, bool barrier);
template <int n, class T>  // instantiated for <3, float> and <5, int>
__global__ void fill(T* out, T value);
// Thread i passes its value to thread i + 1 through dynamic shared memory.
__global__ void rotate_dynamic(const std::uint32_t* in, std::uint32_t* out);
__global__ void read_shared_at(std::uint32_t* out, int index);
__global__ void read_poison(std::uint32_t* out);
__global__ void dynamic_beyond(std::size_t offset, std::size_t count);
__global__ void misaligned_load4(float* out);
__global__ void load_store_groups(std::uint32_t* out);
// Thread `odd` of every block of x = 2 does not come to the barrier: it returns, waits at another
// barrier, or at a shuffle.
__global__ void divergent_barrier(int odd, int how);
__global__ void divergent_warp(int odd, int how);
__global__ void throw_at(int block, int thread);
__global__ void order(unsigned* counter, unsigned* out);
__global__ void shuffles(std::uint32_t* out);
__global__ void half_warps(std::uint32_t* out);
__global__ void places(std::uint32_t* out);
// Two groups of 4 words copied asynchronously; the shared words before any wait, after the first
// group and after both.
__global__ void copies(const std::uint32_t* in, std::uint32_t* out);
// Four 8 x 8 matrices, element r * 8 + c of matrix m being 64 m + 8 r + c, as loaded and then
// transposed in registers; out [32 lanes][2][4].
__global__ void load_matrices(std::uint32_t* out, bool transposed);

}  // namespace numgate::kernels::NUMGATE_BACKEND
