// Copies of 16 bytes from global to shared memory that pass by the registers (cp.async), in groups
// that a thread waits for. On the CPU the target is poison from the issue of a copy until the wait
// of the thread that issued it, so reading early, or overwriting what others still read, shows.
#pragma once
#include "kernels/simt/simt.h"

namespace numgate::simt {
inline namespace NUMGATE_BACKEND {

#if defined(__CUDACC__)

template <class T>
__device__ __forceinline__ void copy16_async(T* to, std::size_t index, const T* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to + index))),
               "l"(from)
               : "memory");
}
// The same, or 16 zero bytes where there is nothing to copy; `from` must be readable all the same.
template <class T>
__device__ __forceinline__ void copy16_or_zero_async(T* to, std::size_t index, const T* from,
                                                     bool copies) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to + index))),
               "l"(from), "r"(copies ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Until at most `groups` of this thread's latest groups are under way.
template <int groups>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

#else

template <class T>
void copy16_or_zero_async(Shared<T> to, std::size_t index, const T* from, bool copies) {
  if (reinterpret_cast<std::uintptr_t>(from) % 16) [[unlikely]]
    fail("misaligned source of an asynchronous copy");
  std::byte* target = reinterpret_cast<std::byte*>(to.group(index, 16 / sizeof(T), 16));
  std::memset(target, 0xff, 16);
  this_thread->copies.push_back(
      {target, copies ? reinterpret_cast<const std::byte*>(from) : nullptr});
}
template <class T>
void copy16_async(Shared<T> to, std::size_t index, const T* from) {
  copy16_or_zero_async(to, index, from, true);
}
inline void commit_copies() {
  Thread& t = *this_thread;
  t.copy_groups.push_back(t.copies.size());
}
template <int groups>
void wait_for_copies() {
  Thread& t = *this_thread;
  if (t.copy_groups.size() <= groups) return;
  const std::size_t done = t.copy_groups.size() - groups, copies = t.copy_groups[done - 1];
  for (std::size_t i = 0; i < copies; ++i)
    if (t.copies[i].from)
      std::memcpy(t.copies[i].to, t.copies[i].from, 16);
    else
      std::memset(t.copies[i].to, 0, 16);
  t.copies.erase(t.copies.begin(), t.copies.begin() + static_cast<std::ptrdiff_t>(copies));
  t.copy_groups.erase(t.copy_groups.begin(),
                      t.copy_groups.begin() + static_cast<std::ptrdiff_t>(done));
  for (std::size_t& end : t.copy_groups) end -= copies;
}

#endif

}  // namespace NUMGATE_BACKEND
}  // namespace numgate::simt
