// Vectors of gigabytes: in pages of 2 MiB where the system has them, since touching a new page of
// 4 KiB costs more than filling it.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace numgate {

template <class T>
struct LargePages {
  using value_type = T;

  LargePages() = default;
  template <class U>
  LargePages(const LargePages<U>&) {}

  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    if (bytes < kLarge) return static_cast<T*>(::operator new(bytes));
    void* memory = ::operator new(bytes, kPage);
    madvise(memory, bytes, MADV_HUGEPAGE);  // may be refused, which costs time alone
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t n) {
    if (n * sizeof(T) < kLarge)
      ::operator delete(memory);
    else
      ::operator delete(memory, kPage);
  }
  template <class U>
  bool operator==(const LargePages<U>&) const {
    return true;
  }

 private:
  static constexpr std::size_t kLarge = std::size_t{8} << 20;
  static constexpr std::align_val_t kPage{std::size_t{2} << 20};
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace numgate
