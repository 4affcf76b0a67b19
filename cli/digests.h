// Digests of the kernels' outputs: what one backend computes, to be compared with another's bits.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/case_id.h"
#include "kernels/backend.h"

namespace numgate {

// Every kernel, named plan, schedule and family on small shapes: ragged lengths, K != V, grouped
// values, 1 to 64 heads.
std::vector<Case> digest_cases();

// Of those, few that together have every stage, schedule and plan, every plan under every kind of
// schedule and with every width and element type; at most 8 heads. For tools under which kernels
// are slow.
std::vector<Case> digest_spread();

// 64-bit FNV-1a of the case's outputs (names and bytes, in order), in hexadecimal.
std::string digest(const Case& c, kernels::Backend& backend);

// By case id.
using Digests = std::map<std::string, std::string>;

// Raises UsageError: unreadable or malformed file.
Digests read_digests(const std::string& file);

}  // namespace numgate
