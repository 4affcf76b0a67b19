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
  // The same plan with every schedule-only site at ieee (equivalence class R). The chain is then
  // dense, also where the plan's own is diagonal: what a cut may cost is the plain algorithm in
  // fp32 (figures of both: kernels/kda/README.md).
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
constexpr Formats production_formats(Format chain, Format merge) {
  Formats f = reference_formats();
  for (Site s :
       {Site::akk_dot, Site::aqk_dot, Site::diag_dot, Site::u_dot, Site::w_dot, Site::u_store,
        Site::w_store, Site::kg_store, Site::qg_store, Site::aqk_store, Site::h_store, Site::ws_dot,
        Site::qs_dot, Site::vnew_store, Site::av_dot, Site::kv_dot, Site::summary_kw})
    f[static_cast<std::size_t>(s)] = Format::bf16;
  f[static_cast<std::size_t>(Site::summary_chain)] = chain;
  f[static_cast<std::size_t>(Site::merge_dot)] = merge;
  return f;
}
constexpr Formats production_formats() {
  return production_formats(Format::diag_tf32x3, Format::ieee);
}

struct NamedPlan {
  std::string_view name, what;
};
// reference, production, tf32, tf32x3.
const std::vector<NamedPlan>& named_plans();

// `name`, `name+site=format+...`. Raises UsageError.
Plan parse_plan(std::string_view text);
// `plan` or `declared:ran`. Raises UsageError.
PlanPair parse_plan_pair(std::string_view text);

}  // namespace numgate
