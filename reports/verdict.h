// Verdicts and the rules that lead to them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace numgate {

// Ordered from harmless to severe: the verdict of a whole is the worst of its parts.
enum class Verdict : std::uint8_t { PASS, CAUGHT, NOT_VERIFIED, TIMEOUT, FAIL, ERROR };

std::string_view name(Verdict v);
// Raises UsageError for a word that is not a verdict.
Verdict parse_verdict(std::string_view text);

// The rules that a reason can name, and the verdict that a cell with such a reason gets:
//   health contract growth equivalence accuracy   FAIL
//   liveness   the family did not construct its mechanism          NOT_VERIFIED
//   coverage   nothing, or too little, was compared; not run       NOT_VERIFIED
//   timeout                                                        TIMEOUT
//   oracle     the truth cannot be trusted                         ERROR (exit code 4)
//   internal   numgate itself failed                               ERROR (exit code 70)
// Raises UsageError for any other name.
Verdict verdict_of_rule(std::string_view rule);

}  // namespace numgate
