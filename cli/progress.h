// One updating line on a terminal, a line every few seconds elsewhere, nothing when quiet.
#pragma once
#include <chrono>
#include <string>

namespace numgate {

class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress() { clear(); }
  // "[done/total] what: step 42 %"
  void update(std::size_t done, std::size_t total, const std::string& what, const std::string& step,
              double fraction);
  // A line that stays.
  void say(const std::string& line);
  void clear();

 private:
  bool quiet_, terminal_;
  std::size_t shown_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace numgate
