// simt.h under g++: CUDA's built-ins over the fibers of cpu_runtime.h.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/errors.h"
#include "kernels/simt/cpu_runtime.h"
#include "kernels/simt/cpu_types.h"

#define threadIdx (::numgate::simt::this_thread->index)
#define blockIdx (::numgate::simt::this_block->index)
#define blockDim (::numgate::simt::this_block->threads)
#define gridDim (::numgate::simt::this_block->grid)
#define warpSize 32

// Static shared memory is one object per OS thread, which runs one block at a time.
#define NUMGATE_SHARED(type, name, count)                                                    \
  static constinit thread_local ::numgate::simt::StaticShared<type, (count)> name##_storage; \
  const ::numgate::simt::Shared<type> name = name##_storage.enter(#name)

namespace numgate::simt {
inline namespace cpu {

struct Stream {};

// A stretch of shared memory whose every access is checked.
template <class T>
class SharedSpan {
 public:
  constexpr SharedSpan() = default;
  SharedSpan(T* data, std::size_t count, const char* name)
      : data_(data), count_(count), name_(name) {}
  template <class U>
  requires std::is_same_v<const U, T> SharedSpan(const SharedSpan<U>& other)
      : SharedSpan(other.data(), other.size(), other.name()) {}

  template <std::integral I>
  T& operator[](I i) const {
    const auto index = static_cast<std::size_t>(i);
    if (index >= count_) [[unlikely]]
      fail_bounds(name_, index, count_);
    return data_[index];
  }
  T& operator*() const { return (*this)[0]; }
  // The rest from `offset` on, as pointer arithmetic would have it.
  template <std::integral I>
  SharedSpan operator+(I offset) const {
    const auto start = static_cast<std::size_t>(offset);
    if (start > count_) [[unlikely]]
      fail_bounds(name_, start, count_);
    return {data_ + start, count_ - start, name_};
  }
  // An aligned group of `n` elements.
  T* group(std::size_t index, std::size_t n, std::size_t alignment) const {
    if (index + n > count_ || index + n < n) [[unlikely]]
      fail_bounds(name_, index, count_);
    if (reinterpret_cast<std::uintptr_t>(data_ + index) % alignment) [[unlikely]] {
      fail("misaligned access to '" + std::string(name_) + "' at index " + std::to_string(index));
    }
    return data_ + index;
  }
  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  const char* name() const { return name_; }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
  const char* name_ = "";
};

template <class T>
using Shared = SharedSpan<T>;

template <class T, std::size_t count>
struct StaticShared {
  static_assert(count * sizeof(T) <= 48 * 1024, "static shared memory is at most 48 KiB");
  alignas(16) std::array<std::byte, count * sizeof(T)> bytes{};
  std::uint64_t serial = 0;

  // The first thread of a block to come here poisons what the last block left.
  Shared<T> enter(const char* name) {
    if (serial != this_block->serial) {
      serial = this_block->serial;
      bytes.fill(std::byte{0xff});
    }
    return {reinterpret_cast<T*>(bytes.data()), count, name};
  }
};

template <class T>
Shared<T> dynamic_shared(std::size_t byte_offset, std::size_t count) {
  const Block& block = *this_block;
  if (byte_offset > block.dynamic_shared_bytes ||
      count > (block.dynamic_shared_bytes - byte_offset) / sizeof(T)) [[unlikely]] {
    fail("dynamic shared memory: " + std::to_string(count) + " elements of " +
         std::to_string(sizeof(T)) + " bytes at byte offset " + std::to_string(byte_offset) +
         " exceed the launch's " + std::to_string(block.dynamic_shared_bytes) + " bytes");
  }
  if (byte_offset % alignof(T)) [[unlikely]] {
    fail("dynamic shared memory: misaligned byte offset " + std::to_string(byte_offset));
  }
  return {reinterpret_cast<T*>(block.dynamic_shared + byte_offset), count, "dynamic shared memory"};
}

template <class V, class T>
V load_group(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline float4 load4(const float* p, std::size_t i) { return load_group<float4>(p + i); }
inline uint4 load4(const std::uint32_t* p, std::size_t i) { return load_group<uint4>(p + i); }
inline void store4(float* p, std::size_t i, float4 v) { std::memcpy(p + i, &v, sizeof v); }
inline void store4(std::uint32_t* p, std::size_t i, uint4 v) { std::memcpy(p + i, &v, sizeof v); }
inline float2 load2(Shared<const float> s, std::size_t i) {
  return load_group<float2>(s.group(i, 2, 8));
}
inline float4 load4(Shared<const float> s, std::size_t i) {
  return load_group<float4>(s.group(i, 4, 16));
}
inline uint4 load4(Shared<const std::uint32_t> s, std::size_t i) {
  return load_group<uint4>(s.group(i, 4, 16));
}
inline void store4(Shared<float> s, std::size_t i, float4 v) {
  std::memcpy(s.group(i, 4, 16), &v, sizeof v);
}
inline void store4(Shared<std::uint32_t> s, std::size_t i, uint4 v) {
  std::memcpy(s.group(i, 4, 16), &v, sizeof v);
}
// Four 16-bit elements.
inline uint2 load_four(const std::uint16_t* p, std::size_t i) { return load_group<uint2>(p + i); }
inline uint2 load_four(Shared<const std::uint16_t> s, std::size_t i) {
  return load_group<uint2>(s.group(i, 4, 8));
}
inline void store_four(std::uint16_t* p, std::size_t i, uint2 v) {
  std::memcpy(p + i, &v, sizeof v);
}
inline void store_four(Shared<std::uint16_t> s, std::size_t i, uint2 v) {
  std::memcpy(s.group(i, 4, 8), &v, sizeof v);
}
inline void store2(Shared<float> s, std::size_t i, float2 v) {
  std::memcpy(s.group(i, 2, 8), &v, sizeof v);
}
// Eight 16-bit elements.
inline uint4 load8(const std::uint16_t* p, std::size_t i) { return load_group<uint4>(p + i); }
inline uint4 load8(Shared<const std::uint16_t> s, std::size_t i) {
  return load_group<uint4>(s.group(i, 8, 16));
}
inline void store8(std::uint16_t* p, std::size_t i, uint4 v) { std::memcpy(p + i, &v, sizeof v); }
inline void store8(Shared<std::uint16_t> s, std::size_t i, uint4 v) {
  std::memcpy(s.group(i, 8, 16), &v, sizeof v);
}
// Two 16-bit elements as one register, the lower index in the low half.
inline std::uint32_t load_pair(const std::uint16_t* p, std::size_t i) {
  return load_group<std::uint32_t>(p + i);
}
inline std::uint32_t load_pair(Shared<const std::uint16_t> s, std::size_t i) {
  return load_group<std::uint32_t>(s.group(i, 2, 4));
}
inline void store_pair(std::uint16_t* p, std::size_t i, std::uint32_t v) {
  std::memcpy(p + i, &v, sizeof v);
}
inline void store_pair(Shared<std::uint16_t> s, std::size_t i, std::uint32_t v) {
  std::memcpy(s.group(i, 2, 4), &v, sizeof v);
}

template <class... Params, class... Args>
void launch(const char* name, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes, Stream,
            void (*kernel)(Params...), Args&&... args) {
  const auto closure =
      std::make_pair(kernel, std::tuple<std::decay_t<Params>...>(static_cast<Params>(args)...));
  run_grid(
      name, grid, block, dynamic_shared_bytes,
      [](const void* p) {
        const auto& [function, arguments] = *static_cast<const decltype(closure)*>(p);
        std::apply(function, arguments);
      },
      &closure);
}

inline void synchronize(Stream) {}  // launches return when they are done

// What every lane of `mask` brings, as the whole group sees it.
inline const std::uint32_t* exchange(std::uint32_t mask, Meeting kind, std::uint32_t value) {
  Warp& warp = *this_thread->warp;
  warp.value[this_thread->lane] = value;
  if (arrive(mask, kind)) {
    if (mask == 0xffffffffu) {
      std::memcpy(warp.result, warp.value, sizeof warp.value);
    } else {
      for (std::uint32_t m = mask; m; m &= m - 1) {
        const int lane = std::countr_zero(m);
        warp.result[lane] = warp.value[lane];
      }
    }
    release(mask);
  }
  return warp.result;
}

template <class T>
T shuffle(std::uint32_t mask, T value, unsigned source) {
  static_assert(sizeof(T) == 4, "shuffles move 32 bits");
  const std::uint32_t* all = exchange(mask, Meeting::shuffle, std::bit_cast<std::uint32_t>(value));
  if (!(mask >> source & 1)) [[unlikely]] {
    fail("shuffle reads lane " + std::to_string(source) + ", which is not in the mask");
  }
  return std::bit_cast<T>(all[source]);
}

inline std::uint32_t vote(std::uint32_t mask, bool predicate) {
  const std::uint32_t* all = exchange(mask, Meeting::vote, predicate);
  std::uint32_t ballot = 0;
  for (std::uint32_t m = mask; m; m &= m - 1)
    ballot |= all[std::countr_zero(m)] << std::countr_zero(m);
  return ballot;
}

}  // namespace cpu
}  // namespace numgate::simt

inline void __syncthreads(std::source_location where = std::source_location::current()) {
  numgate::simt::barrier(where);
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  if (numgate::simt::arrive(mask, numgate::simt::Meeting::syncwarp)) numgate::simt::release(mask);
}
inline void __threadfence_block() {}
inline void __threadfence() {}

// `width` cuts the warp into segments; a lane whose source lies outside its segment keeps its own
// value.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const unsigned lane = numgate::simt::this_thread->lane, w = static_cast<unsigned>(width) - 1;
  return numgate::simt::shuffle(mask, value, (lane & ~w) | (static_cast<unsigned>(source) & w));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = numgate::simt::this_thread->lane, w = static_cast<unsigned>(width) - 1;
  return numgate::simt::shuffle(mask, value, (lane & w) >= delta ? lane - delta : lane);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = numgate::simt::this_thread->lane, w = static_cast<unsigned>(width) - 1;
  return numgate::simt::shuffle(mask, value, (lane & w) + delta <= w ? lane + delta : lane);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  const unsigned lane = numgate::simt::this_thread->lane, w = static_cast<unsigned>(width) - 1;
  const unsigned source = lane ^ static_cast<unsigned>(lane_mask);
  return numgate::simt::shuffle(mask, value, source <= (lane | w) ? source : lane);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return numgate::simt::vote(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) {
  return numgate::simt::vote(mask, predicate != 0) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return numgate::simt::vote(mask, predicate != 0) == mask;
}

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
