// What ranks say to each other, in the shape of MPI and NCCL: every rank calls the same collectives
// in the same order. Pointers are device pointers of the rank's backend.
#pragma once
#include <cstddef>
#include <functional>

#include "kernels/backend.h"

namespace numgate {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Every rank brings `bytes` bytes; `received` takes size() * bytes, in rank order.
  virtual void all_gather(const void* sent, void* received, std::size_t bytes) = 0;
};

// Runs `rank_main` once for each of `ranks` ranks of this process, which share one backend: one
// rank computes at a time, and waits for the others in collectives. Rethrows the first rank's
// exception.
void run_in_process(int ranks, kernels::Backend& backend,
                    const std::function<void(Communicator&)>& rank_main);

}  // namespace numgate
