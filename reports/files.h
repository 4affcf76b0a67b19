// Reading and writing of whole files.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace numgate {

// Readers see the old file or the new one, never a part. Raises UsageError for an unwritable path.
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Raises UsageError for an unreadable path.
std::string read_file(const std::filesystem::path& path);

}  // namespace numgate
