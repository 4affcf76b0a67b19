// Where the threads of a small team meet, thousands of times a second.
#pragma once
#include <atomic>
#include <thread>
#include <vector>

namespace numgate {

class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}

  // Returns once all threads have called it; what they wrote before is seen after.
  void wait() {
    const unsigned turn = turn_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; turn_.load(std::memory_order_acquire) == turn; ++spins) {
      if (spins < kSpins)
        __builtin_ia32_pause();
      else
        std::this_thread::yield();  // more threads than cores: the late one may need this one's
    }
  }

 private:
  static constexpr int kSpins = 1000;
  const int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<unsigned> turn_{0};
};

// task(0), ..., task(threads - 1), each on a thread of its own, the first on the caller's. Tasks
// must not throw.
template <class Task>
void on_team(int threads, const Task& task) {
  std::vector<std::jthread> others;
  for (int rank = 1; rank < threads; ++rank) others.emplace_back([&task, rank] { task(rank); });
  task(0);
}

}  // namespace numgate
