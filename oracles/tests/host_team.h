// The device of a shadow, emulated: the same tasks, a block at a time, by a team of host threads.
#pragma once
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "oracles/cuda/shadow_device.h"
#include "oracles/cuda/shadow_tasks.h"

namespace numgate::team {

class HostTeam : public TeamDevice {
 public:
  explicit HostTeam(int threads) : threads_(threads), memory_(kArena) {}

  void* allocate(std::size_t bytes) override { return std::malloc(bytes); }
  void release(void* p) noexcept override { std::free(p); }
  void upload(void* to, const void* from, std::size_t n) override { std::memcpy(to, from, n); }
  void download(void* to, const void* from, std::size_t n) override { std::memcpy(to, from, n); }
  int blocks() const override { return 32; }
  void run(const PrepareChunks& task) override { run_blocks(task); }
  void run(const AdvanceStates& task) override { run_blocks(task); }
  void run(const RowErrors& task) override { run_blocks(task); }

 private:
  template <class Task>
  void run_blocks(const Task& task) {
    std::barrier barrier(threads_);
    std::vector<char> votes(static_cast<std::size_t>(threads_));
    const auto member = [&](int rank) {
      host_member = {rank, threads_, threads_ > 1 ? &barrier : nullptr, votes.data()};
      arena() = {memory_.data(), 0};
      for (int block = 0; block < task.blocks(); ++block) {
        task.run(block);
        sync();
      }
      host_member = {};
    };
    std::vector<std::jthread> others;
    for (int rank = 1; rank < threads_; ++rank) others.emplace_back(member, rank);
    member(0);
  }

  int threads_;
  std::vector<double> memory_;
};

}  // namespace numgate::team
