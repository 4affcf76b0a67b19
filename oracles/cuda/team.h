// A team of threads that run one text together: a block on a device; on the host one thread, or
// several.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#if !defined(__CUDACC__)
#include <barrier>
#include <cstdlib>
#endif

#include "oracles/scalars/host_device.h"

namespace numgate::team {

inline constexpr int kThreads = 256;  // of a block

// Memory of a team: granules, handed out by every thread for itself, all in the same order.
inline constexpr int kGranules = 64, kGranule = 4096;  // doubles
inline constexpr std::size_t kArena = std::size_t{kGranules} * kGranule;

#if !defined(__CUDACC__)
// A member of a team on the host.
struct HostMember {
  int rank = 0, size = 1;
  std::barrier<>* barrier = nullptr;  // needed where size > 1
  char* vote = nullptr;               // likewise
};
inline thread_local HostMember host_member;
#endif

NUMGATE_INLINE int rank() {
#if defined(__CUDA_ARCH__)
  return static_cast<int>(threadIdx.x);
#elif defined(__CUDACC__)
  return 0;
#else
  return host_member.rank;
#endif
}
NUMGATE_INLINE int size() {
#if defined(__CUDA_ARCH__)
  return static_cast<int>(blockDim.x);
#elif defined(__CUDACC__)
  return 1;
#else
  return host_member.size;
#endif
}

// Memory written before by any member is seen after.
NUMGATE_INLINE void sync() {
#if defined(__CUDA_ARCH__)
  __syncthreads();
#elif !defined(__CUDACC__)
  if (host_member.barrier) host_member.barrier->arrive_and_wait();
#endif
}

// Whether x holds for every member.
NUMGATE_INLINE bool all(bool x) {
#if defined(__CUDA_ARCH__)
  return __syncthreads_and(x);
#elif defined(__CUDACC__)
  return x;
#else
  if (!host_member.barrier) return x;
  host_member.vote[host_member.rank] = x;
  sync();
  for (int i = 0; i < host_member.size; ++i) x = x && host_member.vote[i];
  sync();
  return x;
#endif
}

// A thread's view of its team's memory.
struct Arena {
  double* memory;
  std::uint64_t taken;  // granules, by bit
};
NUMGATE_INLINE Arena& arena() {
#if defined(__CUDA_ARCH__)
  __shared__ Arena arenas[kThreads];
  return arenas[threadIdx.x];
#else
  static thread_local Arena arena;
  return arena;
#endif
}
NUMGATE_HOST_DEVICE inline void fail() {
#if defined(__CUDA_ARCH__)
  __trap();
#elif !defined(__CUDACC__)
  std::abort();
#endif
}

// Consecutive granules for n doubles, as bits of Arena::taken.
NUMGATE_HOST_DEVICE NUMGATE_NOINLINE inline std::uint64_t take(std::size_t n) {
  if (n == 0) return 0;
  const auto count = static_cast<int>((n + kGranule - 1) / kGranule);
  std::uint64_t& taken = arena().taken;
  std::uint64_t run = count < kGranules ? (std::uint64_t{1} << count) - 1 : ~std::uint64_t{0};
  for (int first = 0; first + count <= kGranules; ++first, run <<= 1)
    if ((taken & run) == 0) {
      taken |= run;
      return run;
    }
  fail();
  return 0;
}
NUMGATE_HOST_DEVICE inline void release(std::uint64_t run) { arena().taken &= ~run; }
NUMGATE_HOST_DEVICE inline double* address(std::uint64_t run) {
#if defined(__CUDA_ARCH__)
  const int first = run == 0 ? 0 : __ffsll(static_cast<long long>(run)) - 1;
#else
  const int first = run == 0 ? 0 : std::countr_zero(run);
#endif
  return arena().memory + static_cast<std::size_t>(first) * kGranule;
}

}  // namespace numgate::team
