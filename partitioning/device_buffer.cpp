#include "partitioning/device_buffer.h"

#include <algorithm>

namespace numgate {

DeviceBuffer::DeviceBuffer(kernels::Backend& backend, std::size_t bytes, int poison)
    : backend_(&backend), memory_(backend.allocate(bytes + 2 * kGuard)), bytes_(bytes) {
  backend.fill(memory_, std::to_integer<int>(kGuardByte), kGuard);
  backend.fill(at(), poison, bytes);
  backend.fill(at(bytes), std::to_integer<int>(kGuardByte), kGuard);
}

DeviceBuffer::~DeviceBuffer() {
  if (memory_) backend_->release(memory_);
}

bool DeviceBuffer::guards_intact() const {
  std::vector<std::byte> zone(kGuard);
  const auto intact = [&](const void* p) {
    backend_->copy_out(zone.data(), p, kGuard);
    return std::all_of(zone.begin(), zone.end(), [](std::byte b) { return b == kGuardByte; });
  };
  return !memory_ || (intact(memory_) && intact(at(bytes_)));
}

}  // namespace numgate
