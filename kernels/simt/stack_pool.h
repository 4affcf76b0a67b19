// Stacks for the fibers of one OS thread, kept from block to block.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace numgate::simt {
inline namespace cpu {

class StackPool {
 public:
  static constexpr std::size_t kStack = 64 * 1024;

  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool() { unmap(); }
  void reserve(unsigned stacks) {
    if (stacks <= stacks_) return;
    unmap();
    stacks_ = 0;
    base_ = nullptr;
    void* p = mmap(nullptr, stacks * (kStack + kGuard), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(p);
    stacks_ = stacks;
    for (unsigned i = 0; i < stacks && i < kGuardedStacks; ++i) {
      mprotect(base_ + i * (kStack + kGuard), kGuard, PROT_NONE);
    }
  }
  std::byte* bottom(unsigned i) const { return base_ + i * (kStack + kGuard) + kGuard; }

 private:
  void unmap() {
    if (!base_) return;
    const std::size_t bytes = stacks_ * (kStack + kGuard);
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(base_, bytes);  // what comes to lie here is not these stacks
#endif
    munmap(base_, bytes);
  }

  static constexpr std::size_t kGuard = 4096;
  // Every guard page splits a mapping, and a process may hold only 65530 of them.
  static constexpr unsigned kGuardedStacks = 128;

  std::byte* base_ = nullptr;
  std::size_t stacks_ = 0;
};

}  // namespace cpu
}  // namespace numgate::simt
