// The tasks of a shadow on a GPU.
#include "oracles/cuda/shadow_device.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/errors.h"
#include "oracles/cuda/shadow_tasks.h"

namespace numgate::team {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(status));
}

// A block takes every gridDim.x-th of the task's blocks, each with an empty arena.
template <class Task>
__global__ void __launch_bounds__(kThreads, 2)
    run_blocks(const __grid_constant__ Task task, double* arenas) {
  for (int block = static_cast<int>(blockIdx.x); block < task.blocks();
       block += static_cast<int>(gridDim.x)) {
    arena() = {arenas + blockIdx.x * kArena, 0};
    task.run(block);
    __syncthreads();
  }
}

class CudaTeamDevice : public TeamDevice {
 public:
  CudaTeamDevice() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      throw UsageError("device", "cuda", "is not there: this machine has no GPU");
    int processors = 0;
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "attributes");
    blocks_ = 2 * processors;
    check(cudaMalloc(&arenas_, static_cast<std::size_t>(blocks_) * kArena * sizeof(double)),
          "memory of the teams");
  }
  ~CudaTeamDevice() override { cudaFree(arenas_); }

  void* allocate(std::size_t bytes) override {
    void* p = nullptr;
    check(cudaMalloc(&p, bytes), ("allocation of " + std::to_string(bytes) + " bytes").c_str());
    return p;
  }
  void release(void* p) noexcept override { cudaFree(p); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "upload");
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "download");
  }
  int blocks() const override { return blocks_; }
  void run(const PrepareChunks& task) override { launch(task); }
  void run(const AdvanceStates& task) override { launch(task); }
  void run(const RowErrors& task) override { launch(task); }

 private:
  template <class Task>
  void launch(const Task& task) {
    const int grid = std::min(task.blocks(), blocks_);
    if (grid > 0) run_blocks<<<grid, kThreads>>>(task, arenas_);
    check(cudaGetLastError(), "launch");
  }

  int blocks_ = 0;
  double* arenas_ = nullptr;
};

}  // namespace

std::unique_ptr<TeamDevice> cuda_shadow_device() { return std::make_unique<CudaTeamDevice>(); }

}  // namespace numgate::team
