// The growth rule of DESIGN 6, along a tensor's tokens and along a ladder of contexts, and the
// sites to suspect where a rule fails.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/case_id.h"
#include "reports/policy.h"
#include "reports/result.h"

namespace numgate {

// What to suspect: the sites that do not run as declared, else, for a cut that costs too much, the
// sites that only the schedule has and that are not at ieee.
std::vector<std::string> suspects(const Case& c, std::string_view rule);

// A value at the end of a fit, carried on to the target context.
double project(double at_end, const Slope& slope, double exponent, const Policy& policy);

// The growth rule, of the score `w` at the end of the fit.
bool grows_beyond(const Slope& slope, double w, const Policy& policy);
// `along`: what the score grows with.
Reason growth_reason(const Case& c, const std::string& tensor, std::string_view along,
                     const Slope& slope, double w, const Policy& policy);

}  // namespace numgate
