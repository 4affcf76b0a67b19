#include "oracles/scalars/elementary.h"

#include <cstdlib>

#include "oracles/scalars/multiprecision.h"

namespace numgate {

const ElementaryConstants& elementary_constants() {
  static const ElementaryConstants constants = [] {
    ElementaryConstants c;
    for (std::size_t j = 0; j < c.root.size(); ++j)
      c.root[j] = to_double_double(exp2(Mpfr512(static_cast<double>(j) / 64.0)));
    Mpfr512 rest = log(Mpfr512(2.0)) / 64.0;
    for (double& word : c.step) {
      word = to_double(rest);
      rest -= word;
    }
    Mpfr512 factorial(1.0);
    for (std::size_t n = 0; n < c.inverse_factorial.size(); ++n) {
      if (n > 0) factorial *= static_cast<double>(n);
      c.inverse_factorial[n] = to_double_double(Mpfr512(1.0) / factorial);
    }
    return c;
  }();
  return constants;
}

double Constant<double>::parse(const char* decimal) { return std::strtod(decimal, nullptr); }

DoubleDouble<double> Constant<DoubleDouble<double>>::parse(const char* decimal) {
  return to_double_double(Mpfr512(decimal));
}

}  // namespace numgate
