// Numbers as people read them.
#pragma once
#include <cstdint>
#include <string>

namespace numgate {

std::string number_text(double x);       // three digits: `0.0102`, `9,900`, `1.2e-7`, `inf`
std::string count_text(std::int64_t n);  // `1,048,576`

}  // namespace numgate
