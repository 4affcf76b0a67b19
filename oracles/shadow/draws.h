// The draws of a shadow, summed.
#pragma once
#include <atomic>
#include <bitset>
#include <exception>
#include <map>
#include <mutex>
#include <string>

#include <omp.h>

#include "oracles/shadow.h"
#include "oracles/shadow/error_sums.h"
#include "oracles/shadow/shadow_sites.h"

namespace numgate::shadow {

using SiteSet = std::bitset<kSiteCount>;
using Sums = std::map<std::string, ErrorSums>;  // by tensor

// One (head, mode, draw), independent of the others.
struct WalkIndex {
  std::int64_t head;
  int mode, draw;

  WalkIndex(std::int64_t i, int draws)
      : head(i / (2 * draws)),
        mode(static_cast<int>(i % 2)),
        draw(static_cast<int>(i / 2 % draws)) {}
  DrawTable table(const Case& c, const Plan& plan, int draws, SiteSet active) const {
    return draw_table(plan,
                      {mode == 0 ? Reading::independent : Reading::dithered, draw, draws,
                       c.seed * 1024 + static_cast<std::uint64_t>(head)},
                      active);
  }
};

// Tells options.progress now and then how much of `total` tokens is done.
class Progress {
 public:
  Progress(const ShadowOptions& options, std::int64_t total) : options_(options), total_(total) {}
  void add(std::int64_t tokens) {
    const std::int64_t before = done_.fetch_add(tokens);
    if (!options_.progress || before * 100 / total_ == (before + tokens) * 100 / total_) return;
    const std::lock_guard guard(lock_);
    options_.progress(static_cast<double>(before + tokens) / static_cast<double>(total_));
  }

 private:
  const ShadowOptions& options_;
  std::int64_t total_;
  std::atomic<std::int64_t> done_ = 0;
  std::mutex lock_;
};

// Runs task(i) for i < n on `threads` threads (0: OpenMP's default); the first exception is
// rethrown.
template <class Task>
void in_parallel(std::int64_t n, int threads, Task task) {
  std::exception_ptr failure;
  std::mutex lock;
#pragma omp parallel for schedule(dynamic) \
    num_threads(threads > 0 ? threads : omp_get_max_threads())
  for (std::int64_t i = 0; i < n; ++i) {
    try {
      task(i);
    } catch (...) {
      const std::lock_guard guard(lock);
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace numgate::shadow
