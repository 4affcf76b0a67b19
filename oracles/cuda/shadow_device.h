// What runs the tasks of a shadow: a GPU or, in tests, teams of threads on the host.
#pragma once
#include <cstddef>
#include <memory>

namespace numgate::team {

struct PrepareChunks;
struct AdvanceStates;
struct RowErrors;

// Operations follow one another in the order of the calls; run() may return before its task ends.
class TeamDevice {
 public:
  virtual ~TeamDevice() = default;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* p) noexcept = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  virtual int blocks() const = 0;  // that run at the same time
  virtual void run(const PrepareChunks& task) = 0;
  virtual void run(const AdvanceStates& task) = 0;
  virtual void run(const RowErrors& task) = 0;
};

// The GPU of this machine. Raises UsageError where there is none, or the build has no CUDA; and
// std::runtime_error, from any operation, where CUDA fails.
std::unique_ptr<TeamDevice> cuda_shadow_device();

}  // namespace numgate::team
