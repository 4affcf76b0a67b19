#include "kernels/backend.h"

#include <cstdlib>
#include <fstream>
#include <limits>
#include <new>

#include "kernels/driver_version.h"
#include "kernels/kda/launch.h"
#include "kernels/simt/probes.cuh"

namespace numgate::kernels {
namespace NUMGATE_BACKEND {
namespace {

// Memory of the machine that the kernels of this backend run on.
#ifdef __CUDACC__
void* take(std::size_t bytes) {
  void* p = nullptr;
  simt::check("allocate", cudaMalloc(&p, bytes));
  return p;
}
std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  simt::check("memory", cudaMemGetInfo(&free, &total));
  return free - free / 32;  // what the allocator loses to its own pieces
}
void give(void* p) { cudaFree(p); }
void move(void* to, const void* from, std::size_t bytes) {
  simt::check("copy", cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}
void set(void* p, int byte, std::size_t bytes) { simt::check("fill", cudaMemset(p, byte, bytes)); }
constexpr const char* kName = "cuda";
std::string device_name() {
  cudaDeviceProp properties;
  simt::check("device", cudaGetDeviceProperties(&properties, 0));
  return properties.name;
}
std::string driver_version() {
  int version = 0;  // CUDA's, as 1000 major + 10 minor
  simt::check("driver", cudaDriverGetVersion(&version));
  std::ifstream file("/proc/driver/nvidia/version");
  const std::string module = kernel_module_version(file);
  return (module.empty() ? "" : module + ", ") + "CUDA driver " + std::to_string(version / 1000) +
         "." + std::to_string(version % 1000 / 10);
}
std::string compiler_version() {
  return "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." +
         std::to_string(__CUDACC_VER_MINOR__) + "." + std::to_string(__CUDACC_VER_BUILD__);
}
#else
void* take(std::size_t bytes) {
  void* p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!p) throw std::bad_alloc();
  return p;
}
std::size_t free_memory() { return std::numeric_limits<std::size_t>::max(); }  // it pages
void give(void* p) { std::free(p); }
void move(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void set(void* p, int byte, std::size_t bytes) { std::memset(p, byte, bytes); }
constexpr const char* kName = "cpu";
std::string device_name() { return "CPU backend, bits of an NVIDIA H200"; }
std::string driver_version() { return "none"; }
std::string compiler_version() { return "g++ " __VERSION__; }
#endif

class DeviceBackend final : public Backend {
 public:
  std::string name() const override { return kName; }
  std::string device() const override { return device_name(); }
  std::string driver() const override { return driver_version(); }
  std::string toolkit() const override { return compiler_version(); }
  std::size_t available() const override { return free_memory(); }
  void* allocate(std::size_t bytes) override { return take(bytes); }
  void release(void* p) override { give(p); }
  void copy_in(void* device, const void* host, std::size_t bytes) override {
    move(device, host, bytes);
  }
  void copy_out(void* host, const void* device, std::size_t bytes) override {
    move(host, device, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void fill(void* device, int byte, std::size_t bytes) override { set(device, byte, bytes); }
  void synchronize() override { simt::synchronize(stream_); }

  void run(const PrepareArgs& a, const Plan& p) override { launch_prepare(a, p, stream_); }
  void run(const StatePassArgs& a, const Plan& p) override { launch_state_pass(a, p, stream_); }
  void run(const SegmentMapArgs& a, const Plan& p) override { launch_segment_map(a, p, stream_); }
  void run(const MergeArgs& a, const Plan& p) override { launch_merge(a, p, stream_); }
  void run(const DecodeArgs& a, const Plan& p) override { launch_decode(a, p, stream_); }
  void run(const ReplayArgs& a, const Plan& p) override { launch_replay(a, p, stream_); }
  void run(const FlushArgs& a, const Plan& p) override { launch_flush(a, p, stream_); }
  void run(const L2NormArgs& a, const Plan& p) override { launch_l2_norm(a, p, stream_); }
  void run(const GateArgs& a, const Plan& p) override { launch_gate(a, p, stream_); }
  void run(const BetaArgs& a, const Plan& p) override { launch_beta(a, p, stream_); }
  void run(const ConvArgs& a, const Plan& p) override { launch_conv(a, p, stream_); }
  void run(const OutNormArgs& a, const Plan& p) override { launch_out_norm(a, p, stream_); }
  void run(const TensorCoreProbe& p) override { launch_probe(p, stream_); }
  void run(const FunctionProbe& p) override { launch_probe(p, stream_); }

 private:
  simt::Stream stream_{};
};

}  // namespace
}  // namespace NUMGATE_BACKEND

#ifdef __CUDACC__
std::unique_ptr<Backend> make_cuda_backend() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
    throw UsageError("backend", "cuda", "this machine has no CUDA device");
  return std::make_unique<cuda::DeviceBackend>();
}
#else
std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<cpu::DeviceBackend>(); }
#endif

}  // namespace numgate::kernels
