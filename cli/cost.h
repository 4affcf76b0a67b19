// What a campaign is expected to cost, so that a profile can be fitted to the time there is.
#pragma once
#include <set>
#include <string>

#include "core/case_id.h"
#include "reports/result.h"

namespace numgate {

// Seconds of each cell on one H200 with 16 host cores, in the order in which they run: like Group
// it charges inputs, truth and shadows to the first cell that needs them.
class CostModel {
 public:
  explicit CostModel(bool gpu_oracle) : gpu_oracle_(gpu_oracle) {}
  Timing next(const Case& c, bool run_twice);

 private:
  bool gpu_oracle_;
  std::string group_, control_;
  std::set<std::string> shadows_;
};

}  // namespace numgate
