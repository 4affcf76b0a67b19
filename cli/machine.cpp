#include "cli/machine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "core/errors.h"

namespace numgate {

std::string git_commit() { return NUMGATE_COMMIT; }

std::string hardware() {
  std::string model = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  struct sysinfo info {};
  sysinfo(&info);
  const double gib = static_cast<double>(info.totalram) * info.mem_unit / (1 << 30);
  return fmt::format("{}, {} cores, {:.0f} GiB", model, std::thread::hardware_concurrency(), gib);
}

std::string compiler() { return NUMGATE_COMPILER; }

std::string utc_now() {
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

std::unique_ptr<kernels::Backend> make_backend(const std::string& name) {
  if (name == "cpu") return kernels::make_cpu_backend();
  if (name != "cuda") throw UsageError("--backend", name, "known backends are cpu and cuda");
#ifdef NUMGATE_WITH_CUDA
  return kernels::make_cuda_backend();
#else
  throw UsageError("--backend", name, "this build has no CUDA");
#endif
}

}  // namespace numgate
