#include "partitioning/communicator.h"

#include <omp.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace numgate {
namespace {

// The ranks take turns in rank order; a rank that comes to a collective passes the turn on. When
// all have come, the turn goes to rank 0 again. So a run does the same thing in the same order
// every time.
class Turns {
 public:
  Turns(int ranks, kernels::Backend& backend) : sent(ranks), backend(backend), ranks_(ranks) {}

  void wait_for_turn(int rank) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == rank || failure; });
    if (failure) throw Abandoned{};
  }
  // Ends the rank's turn; with `until_all` it returns when every rank has come here and its turn is
  // back.
  void pass(int rank, bool until_all) {
    std::unique_lock lock(mutex_);
    const long round = round_;
    turn_ = (rank + 1) % ranks_;
    if (turn_ == 0) ++round_;
    changed_.notify_all();
    if (!until_all) return;
    changed_.wait(lock, [&] { return failure || (turn_ == rank && round_ != round); });
    if (failure) throw Abandoned{};
  }
  void fail(const std::exception_ptr& e) {
    std::scoped_lock lock(mutex_);
    if (!failure) failure = e;
    changed_.notify_all();
  }

  struct Abandoned {};
  std::vector<const void*> sent;
  kernels::Backend& backend;
  std::exception_ptr failure;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int ranks_, turn_ = 0;
  long round_ = 0;
};

class InProcess final : public Communicator {
 public:
  InProcess(int rank, int size, Turns& turns) : rank_(rank), size_(size), turns_(turns) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_gather(const void* sent, void* received, std::size_t bytes) override {
    turns_.sent[rank_] = sent;
    turns_.pass(rank_, true);
    for (int r = 0; r < size_; ++r)
      turns_.backend.copy(static_cast<std::byte*>(received) + r * bytes, turns_.sent[r], bytes);
    turns_.pass(rank_, true);  // nobody may overwrite what it sent before all have read it
  }

 private:
  int rank_, size_;
  Turns& turns_;
};

}  // namespace

void run_in_process(int ranks, kernels::Backend& backend,
                    const std::function<void(Communicator&)>& rank_main) {
  Turns turns(ranks, backend);
  const int processors = omp_get_max_threads();  // which a new thread does not inherit
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      omp_set_num_threads(processors);
      try {
        InProcess communicator(r, ranks, turns);
        turns.wait_for_turn(r);
        rank_main(communicator);
        turns.pass(r, false);
      } catch (const Turns::Abandoned&) {
      } catch (...) {
        turns.fail(std::current_exception());
      }
    });
  for (auto& t : threads) t.join();
  if (turns.failure) std::rethrow_exception(turns.failure);
}

}  // namespace numgate
