#include "kernels/tests/simt_kernels.h"

#include <stdexcept>

#include "kernels/simt/async_copy.h"
#include "kernels/simt/load_matrix.h"

namespace numgate::kernels::NUMGATE_BACKEND {

__global__ void reduce(const float* in, float* out, bool barrier) {
  NUMGATE_SHARED(float, sums, 32);
  const unsigned thread = threadIdx.x;
  float sum = in[blockIdx.x * blockDim.x + thread];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (thread % 32 == 0) sums[thread / 32] = sum;
  if (barrier) __syncthreads();
  if (thread == 0) {
    float total = 0;
    for (unsigned i = 0; i < blockDim.x / 32; ++i) total += sums[i];
    out[blockIdx.x] = total;
  }
}

template <int n, class T>
__global__ void fill(T* out, T value) {
  for (int i = 0; i < n; ++i) out[threadIdx.x * n + i] = value;
}
template __global__ void fill<3, float>(float*, float);
template __global__ void fill<5, int>(int*, int);

__global__ void rotate_dynamic(const std::uint32_t* in, std::uint32_t* out) {
  const auto first = simt::dynamic_shared<std::uint32_t>(0, blockDim.x);
  const auto second = simt::dynamic_shared<std::uint32_t>(4 * blockDim.x, blockDim.x);
  first[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  second[(threadIdx.x + 1) % blockDim.x] = first[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = second[threadIdx.x];
}

__global__ void read_shared_at(std::uint32_t* out, int index) {
  NUMGATE_SHARED(std::uint32_t, table, 8);
  if (threadIdx.x == 3) *out = table[index];
}

__global__ void read_poison(std::uint32_t* out) {
  NUMGATE_SHARED(std::uint32_t, table, 4);
  const auto dynamic = simt::dynamic_shared<std::uint32_t>(16, 4);
  out[2 * blockIdx.x] = table[1];
  out[2 * blockIdx.x + 1] = dynamic[1];
  table[1] = dynamic[1] = 7;
}

__global__ void dynamic_beyond(std::size_t offset, std::size_t count) {
  simt::dynamic_shared<float>(offset, count);
}

__global__ void misaligned_load4(float* out) {
  NUMGATE_SHARED(float, table, 16);
  *out = simt::load4(table, 2).x;
}

__global__ void load_store_groups(std::uint32_t* out) {
  NUMGATE_SHARED(float, floats, 8);
  NUMGATE_SHARED(std::uint16_t, halves, 4);
  simt::store4(floats, 4, make_float4(1, 2, 3, 4));
  simt::store_pair(halves, 2, 0xabcd1234u);
  const float4 v = simt::load4(floats, 4);
  out[0] = v.x == 1 && v.w == 4 && floats[6] == 3;
  out[1] = halves[2] == 0x1234 && halves[3] == 0xabcd;
  out[2] = simt::load_pair(halves, 2);
}

__global__ void divergent_barrier(int odd, int how) {
  if (blockIdx.x == 2 && threadIdx.x == static_cast<unsigned>(odd)) {
    if (how == 0) return;
    if (how == 1) __syncthreads();
    if (how == 2) __shfl_sync(0xffffffffu, 1, 0);
  }
  __syncthreads();
}

__global__ void divergent_warp(int odd, int how) {
  if (threadIdx.x == static_cast<unsigned>(odd)) {
    if (how == 0) return;
    if (how == 1) __syncthreads();
    if (how == 2) __ballot_sync(0xffffffffu, 1);
  }
  __syncwarp();
}

__global__ void throw_at(int block, int thread) {
#if !defined(__CUDACC__)
  if (threadIdx.x % 2) __syncwarp(0xaaaaaaaau);
  if (static_cast<int>(blockIdx.x) >= block && static_cast<int>(threadIdx.x) == thread) {
    throw std::runtime_error("block " + std::to_string(blockIdx.x));
  }
  __syncthreads();
#endif
}

__global__ void order(unsigned* counter, unsigned* out) { out[threadIdx.x] = (*counter)++; }

__global__ void shuffles(std::uint32_t* out) {
  const auto lane = threadIdx.x;
  out[lane] = __shfl_sync(0xffffffffu, lane, 3, 8);
  out[32 + lane] = __shfl_up_sync(0xffffffffu, lane, 2, 16);
  out[64 + lane] = __shfl_down_sync(0xffffffffu, lane, 2, 16);
  out[96 + lane] = __shfl_xor_sync(0xffffffffu, lane, 5);
  out[128 + lane] = __ballot_sync(0xffffffffu, lane % 3 == 0);
  out[160 + lane] = 2u * __any_sync(0xffffffffu, lane == 9) + __all_sync(0xffffffffu, lane != 9);
  out[192 + lane] = __float_as_uint(__shfl_sync(0xffffffffu, 0.5f * lane, 31));
}

__global__ void half_warps(std::uint32_t* out) {
  const auto lane = threadIdx.x;
  if (lane < 16) {
    out[lane] = __shfl_sync(0x0000ffffu, lane, 15);
  } else {
    for (int i = 0; i < 3; ++i) out[lane] = __shfl_sync(0xffff0000u, lane + i, 16);
  }
}

__global__ void places(std::uint32_t* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = thread + 1000 * block;
}

__global__ void copies(const std::uint32_t* in, std::uint32_t* out) {
  NUMGATE_SHARED(std::uint32_t, words, 8);
  const auto show = [&](int at) {
    for (int i = 0; i < 8; ++i) out[at * 8 + i] = words[i];
  };
  for (int i = 0; i < 8; ++i) words[i] = 7;
  for (int group = 0; group < 2; ++group) {
    simt::copy16_async(words, 4 * group, in + 4 * group);
    simt::commit_copies();
  }
  show(0);
  simt::wait_for_copies<1>();
  show(1);
  simt::wait_for_copies<0>();
  show(2);
}

__global__ void load_matrices(std::uint32_t* out, bool transposed) {
  NUMGATE_SHARED(std::uint16_t, tile, 256);
  for (int i = threadIdx.x; i < 256; i += 32) tile[i] = static_cast<std::uint16_t>(i);
  __syncwarp();
  std::uint32_t r[4];
  if (transposed)
    simt::load_matrix_x4_transposed(r, tile, threadIdx.x * 8);
  else
    simt::load_matrix_x4(r, tile, threadIdx.x * 8);
  for (int m = 0; m < 4; ++m) {
    out[threadIdx.x * 8 + m] = r[m];
    out[threadIdx.x * 8 + 4 + m] = simt::transpose_matrix(r[m]);
  }
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
