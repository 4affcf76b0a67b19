// Any one site that does not run as declared fails in some family, whatever the schedule.
#include <fmt/format.h>

#include <map>

#include "cli/group.h"
#include "property_tests/tests/kda_properties.h"

namespace numgate {
namespace {

constexpr const char* kDetecting[] = {"gaussian", "needle", "ragged"};

// The sites of a schedule's form.
std::vector<Site> sites_of(ScheduleKind kind) {
  std::vector<Site> sites;
  for (const SiteInfo& s : kSites)
    if (!s.schedule_only && s.site != Site::decode_dot && s.site != Site::conv &&
        s.site != Site::out_norm && s.site != Site::output)
      sites.push_back(s.site);
  if (kind != ScheduleKind::sequential) sites.push_back(Site::handoff);
  if (kind == ScheduleKind::cp)
    sites.insert(sites.end(), {Site::summary_kw, Site::summary_chain, Site::merge_dot});
  if (kind == ScheduleKind::decode) sites.push_back(Site::decode_dot);
  if (kind == ScheduleKind::replay) sites.insert(sites.end(), {Site::replay_dot, Site::ring});
  return sites;
}

TEST(Detection, EverySiteThatRunsInBf16IsCaught) {
  for (const char* schedule : {"sequential", "chunked@50", "cp3", "decode", "replay@8"}) {
    std::map<Site, std::string> table;
    for (const char* family : kDetecting) {
      const auto id = [&](const std::string& plan) {
        return fmt::format("kda.prefill/{}/{}/{}/T=200,state0=random/seed=1", schedule, plan,
                           family);
      };
      Group group(parse_case(id("reference")), cpu(), {});
      for (const Site s : sites_of(parse_schedule(schedule).kind)) {
        const Case c = parse_case(id(fmt::format("reference:reference+{}=bf16", name(s))));
        const CellResult cell = judge(group.evidence(c, false), default_policy());
        table[s] += cell.verdict == Verdict::FAIL ? fmt::format(" {:>10.3g}", cell.score.max)
                                                  : fmt::format(" {:>10}", "-");
      }
    }
    fmt::print("{:<16}{:>11}{:>11}{:>11}   largest score where caught\n", schedule, kDetecting[0],
               kDetecting[1], kDetecting[2]);
    for (const auto& [site, row] : table) {
      fmt::print("  {:<14}{}\n", name(site), row);
      EXPECT_NE(row.find_first_of("0123456789i"), std::string::npos)
          << schedule << " " << name(site);
    }
  }
}

// The same for any schedule, shape and seed.
Violation missed(const Case& any) {
  Case c = any;
  c.stage = "kda.prefill";
  c.shape.state0 = State0::random;
  c.shape.T = std::max<std::int64_t>(c.shape.T, 100);
  c.shape.H = c.shape.HV = 1;
  if (c.schedule.kind == ScheduleKind::tp) c.schedule = {};
  auto sites = sites_of(c.schedule.kind);
  if (c.schedule.kind == ScheduleKind::varlen ||
      segments(c.schedule, c.shape.T).front().size() == c.shape.T)
    sites = sites_of(ScheduleKind::sequential);
  const Site site = sites[c.seed % sites.size()];
  c.plan = parse_plan_pair(fmt::format("reference:reference+{}=bf16", name(site)));
  std::string id;
  for (const char* family : kDetecting) {
    c.family = family;
    id = c.id();
    Group group(c, cpu(), {});
    if (judge(group.evidence(c, false), default_policy()).verdict == Verdict::FAIL) return {};
  }
  return "not caught: " + id;
}

TEST(Detection, AnyDrawnSiteThatRunsInBf16IsCaught) {
  const auto size = [](const Case& c) { return c.shape.T <= 256 && c.schedule.parameter < 200; };
  check_cases("missed", 30, size, missed);
}

}  // namespace
}  // namespace numgate
