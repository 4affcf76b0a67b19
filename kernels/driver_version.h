// The version of NVIDIA's kernel module.
#pragma once
#include <cctype>
#include <istream>
#include <sstream>
#include <string>

namespace numgate::kernels {

// From the text of /proc/driver/nvidia/version, e.g. "580.159.04"; empty where it has none.
inline std::string kernel_module_version(std::istream& text) {
  constexpr const char* kMark = "Kernel Module";
  for (std::string line; std::getline(text, line);) {
    const std::size_t at = line.find(kMark);
    if (at == std::string::npos) continue;
    std::istringstream words(line.substr(at));
    for (std::string word; words >> word;)
      if (std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos)
        return word;
  }
  return "";
}

}  // namespace numgate::kernels
