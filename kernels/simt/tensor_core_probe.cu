#include "kernels/simt/tensor_core_probe.h"

#include "kernels/simt/probes.cuh"
#include "kernels/simt/tensor_core_forms.cuh"
#include "kernels/simt/wgmma.h"

namespace numgate::kernels::NUMGATE_BACKEND {
namespace {

using tensor_core::Tile;
using tensor_core::Type;

constexpr unsigned kThreads = 128;  // four tiles: a warp each, and a warpgroup together

// A lane's registers of a tile, PTX's fragment layout: row lane / 4 + 8 (r % 2) of A, column
// lane / 4 of B.
struct Fragments {
  std::uint32_t a[4], b[2], d[4];

  __device__ Fragments(const Tile& tile, unsigned lane) {
    const unsigned row = lane / 4, k = lane % 4;
    for (unsigned r = 0; r < 4; ++r) {
      a[r] = tile.a[k + r / 2 * 4][row + r % 2 * 8];
      d[r] = tile.c[2 * k + r % 2][row + r / 2 * 8];
    }
    for (unsigned r = 0; r < 2; ++r) b[r] = tile.b[k + r * 4][row];
  }
  __device__ void store(Tile& tile, unsigned lane) const {
    const unsigned row = lane / 4, k = lane % 4;
    for (unsigned r = 0; r < 4; ++r) tile.d[2 * k + r % 2][row + r / 2 * 8] = d[r];
  }
};

__global__ void __launch_bounds__(kThreads) mma_probe(TensorCoreProbe p) {
  const unsigned lane = threadIdx.x % 32;
  Tile& tile = p.tiles[blockIdx.x * 4 + threadIdx.x / 32];
  Fragments f(tile, lane);
  if (!simt::mma_sync(p.type, f.d, f.a, f.b)) return;
  f.store(tile, lane);
  if (blockIdx.x == 0 && threadIdx.x == 0) *p.ran = 1;
}

#if defined(NUMGATE_WGMMA)

template <Type type>
__device__ void wgmma(std::uint32_t* d, const std::uint32_t* a, std::uint64_t b) {
  if constexpr (type == Type::tf32) simt::wgmma_m64n8k8_tf32(d, a, b);
  if constexpr (type == Type::bf16) simt::wgmma_m64n8k16_bf16(d, a, b);
  if constexpr (type == Type::fp16) simt::wgmma_m64n8k16_fp16(d, a, b);
  if constexpr (type == Type::e4m3) simt::wgmma_m64n8k32_e4m3(d, a, b);
  if constexpr (type == Type::e5m2) simt::wgmma_m64n8k32_e5m2(d, a, b);
  if constexpr (type == Type::s8) simt::wgmma_m64n8k32_s8(d, a, b);
  if constexpr (type == Type::s8_satfinite) simt::wgmma_m64n8k32_s8_satfinite(d, a, b);
}

#endif

// A template, since ptxas serialises wgmma in a kernel whose control flow it can't follow.
template <Type type>
__global__ void __launch_bounds__(kThreads) wgmma_probe(TensorCoreProbe p) {
#if defined(NUMGATE_WGMMA)
  __shared__ __align__(128) std::uint32_t b[64];
  const unsigned lane = threadIdx.x % 32;
  Tile* tiles = p.tiles + blockIdx.x * 4;
  Tile& tile = tiles[threadIdx.x / 32];
  Fragments f(tile, lane);
  if (threadIdx.x < 64) {  // a word is four bytes along k
    const unsigned word = threadIdx.x % 4, column = threadIdx.x / 4 % 8, half = threadIdx.x / 32;
    b[threadIdx.x] = tiles[0].b[half * 4 + word][column];
  }
  simt::wgmma_publish();
  __syncthreads();
  simt::wgmma_fence();
  wgmma<type>(f.d, f.a, simt::wgmma_descriptor(b));
  simt::wgmma_wait(f.d);
  f.store(tile, lane);
  if (blockIdx.x == 0 && threadIdx.x == 0) *p.ran = 1;
#elif !defined(__CUDACC__)
  if (threadIdx.x % 32 != 0) return;
  tensor_core::multiply(type, tensor_core::Unit::wgmma, p.tiles[blockIdx.x * 4 + threadIdx.x / 32]);
  *p.ran = 1;
#endif
}

template <Type type>
void launch_wgmma(const TensorCoreProbe& p, dim3 grid, simt::Stream stream) {
  simt::launch("wgmma_probe", grid, kThreads, 0, stream, wgmma_probe<type>, p);
}

}  // namespace

void launch_probe(const TensorCoreProbe& p, simt::Stream stream) {
  const dim3 grid(static_cast<unsigned>(p.count) / 4);
  if (p.unit == tensor_core::Unit::mma)
    return simt::launch("mma_probe", grid, kThreads, 0, stream, mma_probe, p);
  switch (p.type) {
    case Type::tf32:
      return launch_wgmma<Type::tf32>(p, grid, stream);
    case Type::bf16:
      return launch_wgmma<Type::bf16>(p, grid, stream);
    case Type::fp16:
      return launch_wgmma<Type::fp16>(p, grid, stream);
    case Type::e4m3:
      return launch_wgmma<Type::e4m3>(p, grid, stream);
    case Type::e5m2:
      return launch_wgmma<Type::e5m2>(p, grid, stream);
    case Type::s8:
      return launch_wgmma<Type::s8>(p, grid, stream);
    case Type::s8_satfinite:
      return launch_wgmma<Type::s8_satfinite>(p, grid, stream);
  }
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
