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
  std::string text() const;               // canonical text, `name` or `declared:ran`
  std::vector<Site> misdeclared() const;  // sites that run otherwise than declared
};

using Formats = std::array<Format, kSiteCount>;

// The named plans, also at compile time: the CUDA kernels are built from them.
constexpr Formats reference_formats() {
  Formats f{};
  f.fill(Format::ieee);
  f[static_cast<std::size_t>(Site::output)] = Format::input;
  return f;
}
constexpr Formats production_formats(Format chain_and_merge = Format::tf32x3) {
  Formats f = reference_formats();
  for (Site s :
       {Site::akk_dot, Site::aqk_dot, Site::diag_dot, Site::u_dot, Site::w_dot, Site::u_store,
        Site::w_store, Site::kg_store, Site::qg_store, Site::aqk_store, Site::h_store, Site::ws_dot,
        Site::qs_dot, Site::vnew_store, Site::av_dot, Site::kv_dot, Site::summary_kw})
    f[static_cast<std::size_t>(s)] = Format::bf16;
  for (Site s : {Site::summary_chain, Site::merge_dot})
    f[static_cast<std::size_t>(s)] = chain_and_merge;
  return f;
}

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
