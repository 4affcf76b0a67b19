// Device memory that shows what was never written and what was written beyond its end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "kernels/backend.h"

namespace numgate {

// `poison` is the byte that fills a fresh buffer: 0xff makes NaNs of both element types.
inline constexpr int kPoison = 0xff, kOtherPoison = 0x7f;

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(kernels::Backend& backend, std::size_t bytes, int poison = kPoison);
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBuffer();

  template <class T = void>
  T* at(std::size_t byte_offset = 0) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(memory_) + kGuard + byte_offset);
  }
  std::size_t size() const { return bytes_; }
  // Whether the zones before and after the buffer are as they were.
  bool guards_intact() const;
  void upload(const void* host) { backend_->copy_in(at(), host, bytes_); }
  void download(void* host) const { backend_->copy_out(host, at(), bytes_); }

 private:
  static constexpr std::size_t kGuard = 1024;
  static constexpr std::byte kGuardByte{0xa5};
  void swap(DeviceBuffer& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
  }
  kernels::Backend* backend_ = nullptr;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace numgate
