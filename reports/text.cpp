#include "reports/text.h"

#include <fmt/format.h>

#include <cmath>

namespace numgate {

std::string count_text(std::int64_t n) {
  const std::string digits = std::to_string(std::abs(n));
  std::string text = n < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string number_text(double x) {
  if (!std::isfinite(x)) return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
  const double size = std::abs(x);
  if (size >= 1000 && size < 1e6) return count_text(std::llround(x));
  std::string text = fmt::format("{:.3g}", x);
  // 1.2e-07 -> 1.2e-7, 1e+06 -> 1e6
  const auto e = text.find('e');
  if (e == std::string::npos) return text;
  std::string exponent = text.substr(e + 1);
  const bool negative = exponent[0] == '-';
  exponent.erase(0, exponent.find_first_not_of("+-0"));
  return text.substr(0, e) + "e" + (negative ? "-" : "") + exponent;
}

}  // namespace numgate
