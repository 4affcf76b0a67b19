// RapidCheck generators of cases; they shrink toward few tokens, one head, `sequential`,
// `reference`, `gaussian`.
#pragma once
#include <rapidcheck.h>

#include <ostream>
#include <string>
#include <vector>

#include "core/case_id.h"

namespace numgate {

// The named plans, and `reference` with one site changed, for every site and each format that it
// takes (but fp16, whose range some families leave).
std::vector<std::string> generated_plans();

// Valid cases of kda.prefill and kda.core: any schedule, family, shape up to 400 tokens (lengths
// crowd around multiples of 16 and 64) and seed, with one of `plans`.
rc::Gen<Case> any_case(std::vector<std::string> plans = generated_plans());

// What RapidCheck prints of a failing case: the id that replays it.
void showValue(const Case& c, std::ostream& out);

}  // namespace numgate
