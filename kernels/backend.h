// A backend: where kernels run and where their memory is. Every allocation is poisoned and has
// guard zones.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "kernels/kda/kda.h"
#include "kernels/simt/function_probe.h"
#include "kernels/simt/tensor_core_probe.h"

namespace numgate::kernels {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;    // `cpu`, `cuda`
  virtual std::string device() const = 0;  // what the kernels run on
  virtual std::string driver() const = 0;
  virtual std::string toolkit() const = 0;  // what compiled them

  virtual std::size_t available() const = 0;  // bytes of memory that are free
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* p) = 0;
  virtual void copy_in(void* device, const void* host, std::size_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;  // device to device
  virtual void fill(void* device, int byte, std::size_t bytes) = 0;
  virtual void synchronize() = 0;

  virtual void run(const PrepareArgs&, const Plan&) = 0;
  virtual void run(const StatePassArgs&, const Plan&) = 0;
  virtual void run(const SegmentMapArgs&, const Plan&) = 0;
  virtual void run(const MergeArgs&, const Plan&) = 0;
  virtual void run(const DecodeArgs&, const Plan&) = 0;
  virtual void run(const ReplayArgs&, const Plan&) = 0;
  virtual void run(const FlushArgs&, const Plan&) = 0;
  virtual void run(const L2NormArgs&, const Plan&) = 0;
  virtual void run(const GateArgs&, const Plan&) = 0;
  virtual void run(const BetaArgs&, const Plan&) = 0;
  virtual void run(const ConvArgs&, const Plan&) = 0;
  virtual void run(const OutNormArgs&, const Plan&) = 0;

  virtual void run(const TensorCoreProbe&) = 0;
  virtual void run(const FunctionProbe&) = 0;
};

std::unique_ptr<Backend> make_cpu_backend();
// Raises UsageError where this build or this machine has no CUDA.
std::unique_ptr<Backend> make_cuda_backend();

}  // namespace numgate::kernels
