// Profiles: the cases that a campaign runs, as tables.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/case_id.h"

namespace numgate {

// A case that must fail, and the rules that it must at least fail on: contract, growth,
// equivalence, accuracy.
struct PlantedFault {
  Case c;
  std::vector<std::string> rules;
  std::string why;  // the fault, in words
};

struct Profile {
  std::string name, what;
  std::vector<Case> cases;
  std::vector<PlantedFault> controls;
  // Shapes for a combination that the profile does not list, on stages with schedules of their own.
  std::vector<std::string> ladder;
};

inline constexpr std::uint64_t kProfileSeed = 42;

// quick, merge, release, layer, and study for distributions over seeds.
const std::vector<Profile>& profiles();

// Raises UsageError for an unknown profile.
const Profile& profile(std::string_view name);

// `count` seeds: the profile's 42 first, then 1, 2, ...: more seeds never drop one.
std::vector<std::uint64_t> seeds_of(std::int64_t count);

// The cases that a run judges, each with each of `seeds`; without globs the profile's cases (not
// its controls). A glob filters the profile's cases and controls (every seed of the list). A glob
// whose stage, schedule, plan and family are literal names also selects that combination with the
// profile's ladder of shapes. A full id runs as it stands. Raises UsageError for a glob that is
// malformed or matches nothing.
std::vector<Case> select(const Profile& p, const std::vector<std::string>& globs,
                         std::int64_t seed_count = 1);

}  // namespace numgate
