#include "reports/verdict.h"

#include <array>
#include <utility>

#include "core/errors.h"

namespace numgate {
namespace {

constexpr std::array<std::string_view, 6> kVerdicts{"PASS",    "CAUGHT", "NOT_VERIFIED",
                                                    "TIMEOUT", "FAIL",   "ERROR"};

constexpr std::array<std::pair<std::string_view, Verdict>, 10> kRules{{
    {"health", Verdict::FAIL},
    {"contract", Verdict::FAIL},
    {"growth", Verdict::FAIL},
    {"equivalence", Verdict::FAIL},
    {"accuracy", Verdict::FAIL},
    {"liveness", Verdict::NOT_VERIFIED},
    {"coverage", Verdict::NOT_VERIFIED},
    {"timeout", Verdict::TIMEOUT},
    {"oracle", Verdict::ERROR},
    {"internal", Verdict::ERROR},
}};

}  // namespace

std::string_view name(Verdict v) { return kVerdicts[static_cast<std::size_t>(v)]; }

Verdict parse_verdict(std::string_view text) {
  for (std::size_t i = 0; i < kVerdicts.size(); ++i)
    if (kVerdicts[i] == text) return static_cast<Verdict>(i);
  throw UsageError("verdict", std::string(text), "not a verdict");
}

Verdict verdict_of_rule(std::string_view rule) {
  for (const auto& [word, verdict] : kRules)
    if (word == rule) return verdict;
  throw UsageError("rule", std::string(rule), "not a rule");
}

}  // namespace numgate
