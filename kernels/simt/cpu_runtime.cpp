#include "kernels/simt/cpu_runtime.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "kernels/simt/context.h"
#include "kernels/simt/stack_pool.h"

#if defined(__BMI2__)
#include <immintrin.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace numgate::simt {
inline namespace cpu {
namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr std::size_t kMaxDynamicShared = 227 * 1024;

std::atomic<std::uint64_t> schedule_seed{0};

// Thrown in a suspended fiber to unwind it when its block has failed.
struct Abandoned {};

std::string text(uint3 v) {
  return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
}
std::string place(const Block& block, const Thread& thread) {
  return "kernel '" + std::string(block.kernel) + "' block " + text(block.index) + " thread " +
         text(thread.index) + ": ";
}
std::string waits_at(const Thread& thread) {
  static constexpr const char* kNames[] = {"nothing", "__syncthreads", "__syncwarp", "a shuffle",
                                           "a vote",  "a load_matrix", "an mma"};
  std::string s = kNames[static_cast<int>(std::min(thread.waiting, Meeting::mma))];
  if (thread.waiting == Meeting::barrier) {
    s += std::string(" (") + thread.where.file_name() + ":" + std::to_string(thread.where.line()) +
         ")";
  } else {
    char mask[16];
    std::snprintf(mask, sizeof mask, "%08x", thread.waiting_mask);
    s += std::string(" with lane mask ") + mask;
  }
  return s;
}

// What one OS thread needs to run blocks, one after the other.
class Worker {
 public:
  Worker() { dynamic_.resize(kMaxDynamicShared / sizeof(Line)); }

  // Raises what a thread of the block raised.
  void run(const Block& description, std::uint64_t seed, Invoke invoke, const void* closure) {
    begin(description, seed, invoke, closure);
    this_thread = &scheduler_;
    switch_to(*next());
    if (error_) abandon();
    this_thread = nullptr;
    this_block = nullptr;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  void barrier(std::source_location where) {
    Thread& self = *this_thread;
    if (at_barrier_ && (where.line() != where_.line() ||
                        std::strcmp(where.file_name(), where_.file_name()) != 0)) {
      self.waiting = Meeting::barrier;
      self.where = where;
      fail("divergent barrier: this thread is at " + waits_at(self) + ", others are at " +
           where_.file_name() + ":" + std::to_string(where_.line()));
    }
    where_ = where;
    if (++at_barrier_ == size_) {
      at_barrier_ = 0;
      for (unsigned i = 0; i < warp_count(); ++i) warps_[i].ready = lanes(i);
      ready_warps_ = low_bits(warp_count());
    } else {
      self.waiting = Meeting::barrier;
      self.where = where;
    }
    suspend();
  }

  bool arrive(std::uint32_t mask, Meeting kind) {
    Thread& self = *this_thread;
    Warp& warp = *self.warp;
    const std::uint32_t bit = 1u << self.lane;
    if (!(mask & bit)) [[unlikely]]
      fail("a warp operation's mask leaves out its own lane");
    int i = 0;
    while (i < warp.groups && warp.group[i].mask != mask) ++i;
    if (i == warp.groups) warp.group[warp.groups++] = {mask, 0, kind};
    Warp::Group& group = warp.group[i];
    self.waiting = kind;
    self.waiting_mask = mask;
    if (group.kind != kind) [[unlikely]] {
      fail("divergent warp: this thread is at " + waits_at(self) +
           ", other lanes at another operation");
    }
    group.arrived |= bit;
    if (group.arrived == mask) {
      group = warp.group[--warp.groups];
      return true;
    }
    suspend();
    return false;
  }

  void release(std::uint32_t mask) {
    Warp& warp = *this_thread->warp;
    warp.ready |= mask & ~(1u << this_thread->lane);
    if (warp.ready) ready_warps_ |= 1u << warp.number;
  }

 private:
  struct alignas(128) Line {
    std::byte bytes[128];
  };

  static std::uint32_t low_bits(unsigned n) { return n >= 32 ? ~0u : (1u << n) - 1; }
  unsigned warp_count() const { return (size_ + 31) / 32; }
  std::uint32_t lanes(unsigned warp) const { return low_bits(size_ - 32 * warp); }

  static void arrived(Transfer t) {
    auto& from = *static_cast<Thread*>(t.data);
    from.context = t.fctx;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(this_thread->fake_stack, &from.stack_bottom, &from.stack_size);
#endif
  }

  static void switch_to(Thread& next) {
    Thread& self = *this_thread;
    this_thread = &next;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(self.finished ? nullptr : &self.fake_stack, next.stack_bottom,
                                   next.stack_size);
#endif
    arrived(jump(next.context, &self));
  }

  static void enter(Transfer t) {
    arrived(t);
    static_cast<Worker*>(this_thread->block->worker)->live();
  }

  // A fiber's life. It does not return: there is nothing below it on its stack.
  void live() {
    Thread& self = *this_thread;
    self.started = true;
    Thread* after = &scheduler_;
    try {
      invoke_(closure_);
      self.waiting = Meeting::none;
      if (++finished_ < size_) {
        after = next();
        if (!after) deadlock();
      }
    } catch (const Abandoned&) {
    } catch (...) {
      error_ = std::current_exception();
      after = &scheduler_;
    }
    self.finished = true;
    switch_to(*after);
  }

  void suspend() {
    Thread* after = next();
    if (!after) deadlock();
    if (after == this_thread) return;
    switch_to(*after);
    if (error_) throw Abandoned{};
  }

  // Chosen one switch ahead: the choice is a long chain of instructions that would delay the
  // switch.
  Thread* next() {
    Thread* thread = reserved_ ? reserved_ : choose();
    reserved_ = choose();
    return thread;
  }

  // Any ready lane; more often than not one of the same warp, whose stacks are in the cache.
  Thread* choose() {
    if (!ready_warps_) return nullptr;
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const auto r = static_cast<std::uint32_t>(random_ >> 32);
    if (!(ready_warps_ >> warp_ & 1) || r >> 28 == 0) warp_ = any_bit(ready_warps_, r >> 12);
    Warp& warp = warps_[warp_];
    const unsigned lane = any_bit(warp.ready, r);
    warp.ready &= ~(1u << lane);
    if (!warp.ready) ready_warps_ &= ~(1u << warp_);
    return &threads_[32 * warp_ + lane];
  }

  // A uniformly random element of a non-empty set; only the low 16 bits of `random` count.
  static unsigned any_bit(std::uint32_t set, std::uint32_t random) {
    const unsigned skip = (random & 0xffffu) * static_cast<unsigned>(std::popcount(set)) >> 16;
#if defined(__BMI2__)
    return static_cast<unsigned>(std::countr_zero(_pdep_u32(1u << skip, set)));
#else
    for (unsigned i = 0; i < skip; ++i) set &= set - 1;
    return static_cast<unsigned>(std::countr_zero(set));
#endif
  }

  // Nobody can run: names a thread that waits and one that does not come.
  [[noreturn]] void deadlock() {
    const Thread* waits = nullptr;
    for (unsigned i = 0; i < size_ && !waits; ++i) {
      if (threads_[i].started && threads_[i].waiting != Meeting::none) waits = &threads_[i];
    }
    const Thread* missing = nullptr;
    for (unsigned i = 0; i < size_ && !missing; ++i) {
      const Thread& t = threads_[i];
      if (waits->waiting == Meeting::barrier) {
        if (t.waiting != Meeting::barrier) missing = &t;
      } else if (t.warp == waits->warp && (waits->waiting_mask >> t.lane & 1) &&
                 (t.waiting != waits->waiting || t.waiting_mask != waits->waiting_mask)) {
        missing = &t;
      }
    }
    std::string why =
        missing == nullptr ? "a lane that does not exist"
        : missing->waiting == Meeting::none
            ? "thread " + text(missing->index) + ", which has returned"
            : "thread " + text(missing->index) + ", which is at " + waits_at(*missing);
    throw KernelError(place(*this_block, *waits) + "waits for ever at " + waits_at(*waits) +
                      " for " + why);
  }

  void begin(const Block& description, std::uint64_t seed, Invoke invoke, const void* closure) {
    block_ = description;
    block_.worker = this;
    block_.serial = ++serial_;
    block_.dynamic_shared = dynamic_.data()->bytes;
    std::memset(block_.dynamic_shared, 0xff, block_.dynamic_shared_bytes);
    this_block = &block_;
    invoke_ = invoke;
    closure_ = closure;
    random_ = seed;
    reserved_ = nullptr;
    const dim3 shape = block_.threads;
    size_ = shape.x * shape.y * shape.z;
    finished_ = at_barrier_ = 0;
    if (threads_.size() < size_) threads_.resize(size_);
    stacks_.reserve(size_);
    for (unsigned i = 0; i < warp_count(); ++i) {
      warps_[i].number = i;
      warps_[i].groups = 0;
      warps_[i].ready = lanes(i);
    }
    ready_warps_ = low_bits(warp_count());
    warp_ = any_bit(ready_warps_, static_cast<std::uint32_t>(seed));
    for (unsigned i = 0; i < size_; ++i) {
      Thread& t = threads_[i];
      t = Thread{};
      t.index = {i % shape.x, i / shape.x % shape.y, i / (shape.x * shape.y)};
      t.lane = i % 32;
      t.warp = &warps_[i / 32];
      t.block = &block_;
      // Stacks at one distance would share a few sets of the cache: their tops are staggered.
      t.stack_bottom = stacks_.bottom(i);
      t.stack_size = StackPool::kStack - (i * 576) % 4096;
#if defined(__SANITIZE_ADDRESS__)
      __asan_unpoison_memory_region(t.stack_bottom, StackPool::kStack);
#endif
      t.context = make_context(stacks_.bottom(i) + t.stack_size, t.stack_size, enter);
    }
  }

  void abandon() {
    for (unsigned i = 0; i < size_; ++i) {
      if (threads_[i].started && !threads_[i].finished) {
        this_thread = &scheduler_;
        switch_to(threads_[i]);
      }
    }
  }

  Block block_;
  Thread scheduler_;
  std::vector<Thread> threads_;
  Warp warps_[kMaxThreads / 32];
  StackPool stacks_;
  std::vector<Line> dynamic_;
  Invoke invoke_ = nullptr;
  const void* closure_ = nullptr;
  Thread* reserved_ = nullptr;
  std::exception_ptr error_;
  std::source_location where_;
  std::uint64_t random_ = 0, serial_ = 0;
  std::uint32_t ready_warps_ = 0;
  unsigned warp_ = 0, size_ = 0, finished_ = 0, at_barrier_ = 0;
};

Worker& worker() { return *static_cast<Worker*>(this_block->worker); }

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

void check_launch(const char* name, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes) {
  const auto refuse = [&](const std::string& why) {
    throw KernelError("kernel '" + std::string(name) + "': " + why);
  };
  const auto threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kMaxThreads)
    refuse(std::to_string(threads) + " threads in a block");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 ||
      grid.z > 65535) {
    refuse("grid " + text({grid.x, grid.y, grid.z}));
  }
  if (dynamic_shared_bytes > kMaxDynamicShared) {
    refuse(std::to_string(dynamic_shared_bytes) + " bytes of dynamic shared memory");
  }
}

}  // namespace

void set_schedule_seed(std::uint64_t seed) { schedule_seed = seed; }

void fail(const std::string& what) { throw KernelError(place(*this_block, *this_thread) + what); }

void fail_bounds(const char* array, std::size_t index, std::size_t count) {
  fail("'" + std::string(array) + "' has no index " +
       std::to_string(static_cast<std::ptrdiff_t>(index)) + ", only " + std::to_string(count) +
       " elements");
}

void barrier(std::source_location where) { worker().barrier(where); }
bool arrive(std::uint32_t mask, Meeting kind) { return worker().arrive(mask, kind); }
void release(std::uint32_t mask) { worker().release(mask); }

void run_grid(const char* name, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes,
              Invoke invoke, const void* closure) {
  check_launch(name, grid, block, dynamic_shared_bytes);
  const std::int64_t blocks = std::int64_t{grid.x} * grid.y * grid.z;
  const std::uint64_t seed = schedule_seed;
  // Blocks start in order, so the failure of the lowest block is the same on any number of threads.
  std::atomic<std::int64_t> failed{blocks};
  std::exception_ptr error;
  std::mutex mutex;
#pragma omp parallel for schedule(dynamic) if (blocks > 1)
  for (std::int64_t i = 0; i < blocks; ++i) {
    if (i > failed) continue;
    try {
      static thread_local Worker worker;
      Block description;
      description.kernel = name;
      description.index = {static_cast<unsigned>(i % grid.x),
                           static_cast<unsigned>(i / grid.x % grid.y),
                           static_cast<unsigned>(i / grid.x / grid.y)};
      description.threads = block;
      description.grid = grid;
      description.dynamic_shared_bytes = dynamic_shared_bytes;
      worker.run(description, mix(seed ^ mix(static_cast<std::uint64_t>(i))), invoke, closure);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (i < failed) {
        failed = i;
        error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace cpu
}  // namespace numgate::simt
