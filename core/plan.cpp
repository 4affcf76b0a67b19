#include "core/plan.h"

#include "core/errors.h"

namespace numgate {

Format parse_format(std::string_view text) {
  for (const auto& f : kFormats)
    if (f.name == text) return f.format;
  throw UsageError(
      "format", std::string(text),
      "known formats are ieee, tf32, tf32rna, tf32x3, diag_tf32x3, bf16, bf16x3, fp16");
}

Site parse_site(std::string_view text) {
  for (const auto& s : kSites)
    if (s.name == text) return s.site;
  throw UsageError("site", std::string(text), "unknown; `numgate list plans` shows every site");
}

const std::vector<NamedPlan>& named_plans() {
  static const std::vector<NamedPlan> plans{
      {"reference", "fp32 fused multiply-adds everywhere"},
      {"production", "bf16 operands, fp32 state and merge, decay of the chain as a fp32 diagonal"},
      {"tf32", "production with dense chain and merge in plain tf32"},
      {"tf32x3", "production with dense chain and merge in tf32x3"},
  };
  return plans;
}

static Plan named_plan(std::string_view name) {
  if (name == "reference") return {std::string(name), reference_formats()};
  if (name == "production") return {std::string(name), production_formats()};
  if (name == "tf32") return {std::string(name), production_formats(Format::tf32, Format::tf32)};
  if (name == "tf32x3")
    return {std::string(name), production_formats(Format::tf32x3, Format::tf32x3)};
  throw UsageError("plan", std::string(name),
                   "known plans are reference, production, tf32, tf32x3");
}

static void assign(Plan& p, std::string_view site_format) {
  const auto eq = site_format.find('=');
  if (eq == std::string_view::npos)
    throw UsageError("plan", std::string(site_format), "a variant is written site=format");
  const Site s = parse_site(site_format.substr(0, eq));
  const Format f = parse_format(site_format.substr(eq + 1));
  const bool dot = info(s).kind == SiteKind::dot;
  // Elementwise dots: their operands can be narrowed, but they never run on the tensor core.
  const bool vector_dot = s == Site::decode_dot || s == Site::replay_dot || s == Site::diag_dot;
  // The inverse decay of a diagonal block reaches 2^116.
  const bool wide = s == Site::diag_dot;
  const bool store_ok = f == Format::ieee || f == Format::bf16 || f == Format::fp16 ||
                        f == Format::tf32 || f == Format::tf32rna ||
                        (f == Format::input && s == Site::output);
  if ((dot && f == Format::input) || ((!dot || vector_dot) && !store_ok) ||
      (wide && f == Format::fp16) || (f == Format::diag_tf32x3 && s != Site::summary_chain))
    throw UsageError("plan", std::string(site_format), "this site has no such format");
  p[s] = f;
}

Plan parse_plan(std::string_view text) {
  std::size_t plus = text.find('+');
  Plan p = named_plan(text.substr(0, plus));
  while (plus != std::string_view::npos) {
    const std::size_t next = text.find('+', plus + 1);
    assign(p, text.substr(plus + 1, next == std::string_view::npos ? next : next - plus - 1));
    plus = next;
  }
  p.name = std::string(text);
  return p;
}

PlanPair parse_plan_pair(std::string_view text) {
  const std::size_t colon = text.find(':');
  PlanPair pair;
  pair.declared = parse_plan(text.substr(0, colon));
  pair.ran = colon == std::string_view::npos ? pair.declared : parse_plan(text.substr(colon + 1));
  return pair;
}

std::string PlanPair::text() const {
  return declared.name == ran.name ? declared.name : declared.name + ":" + ran.name;
}

std::vector<Site> PlanPair::misdeclared() const {
  std::vector<Site> sites;
  for (const auto& s : kSites)
    if (declared[s.site] != ran[s.site]) sites.push_back(s.site);
  return sites;
}

Plan Plan::schedule_sites_at_ieee() const {
  Plan p = *this;
  for (const auto& s : kSites)
    if (s.schedule_only) p[s.site] = Format::ieee;
  return p;
}

}  // namespace numgate
