#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace numgate {

using namespace std::chrono_literals;

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::update(std::size_t done, std::size_t total, const std::string& what,
                      const std::string& step, double fraction) {
  const auto now = std::chrono::steady_clock::now();
  if (quiet_ || now - last_ < (terminal_ ? 100ms : 5000ms)) return;
  last_ = now;
  std::string line = fmt::format("[{}/{}] {}: {}", done, total, what, step);
  if (fraction > 0) line += fmt::format(" {:.0f} %", 100 * fraction);
  if (!terminal_) {
    fmt::print(stderr, "{}\n", line);
    return;
  }
  constexpr std::size_t kWidth = 110;
  if (line.size() > kWidth) line = line.substr(0, kWidth - 3) + "...";
  fmt::print(stderr, "\r{:<{}}", line, shown_);
  shown_ = line.size();
  std::fflush(stderr);
}

void Progress::say(const std::string& line) {
  if (quiet_) return;
  clear();
  fmt::print(stderr, "{}\n", line);
}

void Progress::clear() {
  if (shown_ > 0) fmt::print(stderr, "\r{:<{}}\r", "", shown_);
  shown_ = 0;
}

}  // namespace numgate
