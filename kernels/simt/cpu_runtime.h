// The CPU backend's machine: a block's threads are fibers on one OS thread, which meet at barriers
// and at warp operations; blocks are spread over OS threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>
#include <string>
#include <vector>

#include "kernels/simt/cpu_types.h"
#include "kernels/simt/tensor_core.h"

namespace numgate::simt {
inline namespace cpu {

struct Block;
struct Warp;

enum class Meeting : std::uint8_t {
  none,
  barrier,
  syncwarp,
  shuffle,
  vote,
  load_matrix,
  mma
};  // mma + its type

// One thread of a block, or the OS thread's own context (the scheduler).
struct Thread {
  uint3 index{0, 0, 0};
  unsigned lane = 0;
  Warp* warp = nullptr;
  Block* block = nullptr;
  void* context = nullptr;
  Meeting waiting = Meeting::none;
  std::uint32_t waiting_mask = 0;
  bool started = false, finished = false;
  std::source_location where;  // of the barrier it waits at
  struct Copy {
    std::byte* to;
    const std::byte* from;
  };
  std::vector<Copy> copies;              // asynchronous, under way
  std::vector<std::size_t> copy_groups;  // ends of their groups in `copies`
  // For AddressSanitizer.
  const void* stack_bottom = nullptr;
  std::size_t stack_size = 0;
  void* fake_stack = nullptr;
};

struct Warp {
  static constexpr unsigned kLanes = 32;
  struct Group {
    std::uint32_t mask, arrived;
    Meeting kind;
  };

  unsigned number = 0;
  std::uint32_t ready = 0;  // lanes that can run
  int groups = 0;
  Group group[kLanes];              // meetings that wait for lanes, one per mask
  std::uint32_t value[kLanes];      // what the lanes bring to a shuffle or vote
  std::uint32_t result[kLanes];     // and what they take from it
  tensor_core::Tile tile;           // the fragments of an mma
  const void* row[kLanes];          // the rows of a load_matrix
  std::uint16_t matrix[kLanes][8];  // and what they hold
};

struct Block {
  const char* kernel = nullptr;
  uint3 index{0, 0, 0};
  dim3 threads, grid;
  std::byte* dynamic_shared = nullptr;
  std::size_t dynamic_shared_bytes = 0;
  void* worker = nullptr;    // the OS thread's machinery that runs it
  std::uint64_t serial = 0;  // distinct for every block that this OS thread has run
};

inline constinit thread_local Thread* this_thread = nullptr;
inline constinit thread_local Block* this_block = nullptr;

// Seeds the order in which fibers run between meetings.
void set_schedule_seed(std::uint64_t seed);

// Raises KernelError, with the kernel, block and thread in front.
[[noreturn]] void fail(const std::string& what);
[[noreturn]] void fail_bounds(const char* array, std::size_t index, std::size_t count);

// Waits for all threads of the block.
void barrier(std::source_location where);

// Brings this lane to a meeting of `mask`. True for the last lane to arrive: it does the work of
// the meeting, while the others sleep, and then calls release. The others return false after that.
bool arrive(std::uint32_t mask, Meeting kind);
void release(std::uint32_t mask);

using Invoke = void (*)(const void* closure);
void run_grid(const char* name, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes,
              Invoke invoke, const void* closure);

}  // namespace cpu
}  // namespace numgate::simt
