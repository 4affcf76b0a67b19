// Plans: a format for each site.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "core/site.h"

namespace numgate {

struct Plan {
  std::string name;                          // `production`, `reference+merge.dot=tf32`
  std::array<Format, kSiteCount> formats{};  // by site

  Format operator[](Site s) const { return formats[static_cast<std::size_t>(s)]; }
  Format& operator[](Site s) { return formats[static_cast<std::size_t>(s)]; }
  // The same plan with every schedule-only site at ieee (equivalence class R).
  Plan schedule_sites_at_ieee() const;
};

// What is declared and what runs; equal unless the plan is written `declared:ran`.
struct PlanPair {
  Plan declared, ran;
  std::string text() const;                  // canonical text, `name` or `declared:ran`
  std::vector<Site> misdeclared() const;     // sites that run otherwise than declared
};

struct NamedPlan {
  std::string_view name, what;
};
// reference, production, tf32.
const std::vector<NamedPlan>& named_plans();

// `name`, `name+site=format+...`. Raises UsageError.
Plan parse_plan(std::string_view text);
// `plan` or `declared:ran`. Raises UsageError.
PlanPair parse_plan_pair(std::string_view text);

}  // namespace numgate
