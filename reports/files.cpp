#include "reports/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/errors.h"

namespace numgate {

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  // In the same folder, since rename() replaces a file only within a file system.
  std::filesystem::path part = path;
  part += "." + std::to_string(::getpid()) + ".part";
  const auto fail = [&](const std::string& why) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw UsageError("output", path.string(), why);
  };
  errno = 0;
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  if (!file) fail(std::string("cannot be written: ") + std::strerror(errno));
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) fail(std::string("cannot be written: ") + std::strerror(errno));
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (error) fail("cannot be written: " + error.message());
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // A folder opens but does not read; an empty file sets failbit on operator<< as well.
  if (std::filesystem::is_directory(path) || !file)
    throw UsageError("input", path.string(), "cannot be read");
  text << file.rdbuf();
  return text.str();
}

}  // namespace numgate
