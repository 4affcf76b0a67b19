#include "property_tests/profiles.h"

#include <algorithm>
#include <set>

#include "core/errors.h"
#include "property_tests/families.h"

namespace numgate {
namespace {

constexpr std::string_view kWildcards = "*?";

void check_form(const std::string& glob) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@=+,:/*?-";
  if (glob.empty()) throw UsageError("glob", glob, "is empty");
  const auto bad = glob.find_first_not_of(kAllowed);
  if (bad != std::string::npos)
    throw UsageError("glob", glob,
                     std::string("has a character that no case id has: '") + glob[bad] + "'");
  if (std::count(glob.begin(), glob.end(), '/') > 5)
    throw UsageError("glob", glob,
                     "has more than the six parts of stage/schedule/plan/family/shape/seed=N");
}

// stage, schedule, plan and family of a glob that spells all four out, and the rest; empty
// otherwise.
std::vector<std::string> literal_parts(const std::string& glob) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (parts.size() < 4) {
    const auto end = std::min(glob.find('/', begin), glob.size());
    parts.push_back(glob.substr(begin, end - begin));
    if (end == glob.size() && parts.size() < 4) return {};
    begin = std::min(end + 1, glob.size());
  }
  if (std::any_of(parts.begin(), parts.end(), [](auto& p) {
        return p.empty() || p.find_first_of(kWildcards) != std::string::npos;
      }))
    return {};
  parts.push_back(begin < glob.size() ? glob.substr(begin) : "*");
  return parts;
}

// The seeds that a glob names itself, else those asked for.
std::vector<std::uint64_t> seeds_for(const std::string& glob, std::int64_t count) {
  const auto at = glob.rfind("/seed=");
  if (at == std::string::npos || glob.find_first_of(kWildcards, at) != std::string::npos)
    return seeds_of(count);
  return {parse_case("kda.beta/sequential/reference/gaussian/T=1" + glob.substr(at)).seed};
}

std::vector<std::string> ladder_of(const Profile& p, const Case& names) {
  if (names.stage == "kda.prefill" || names.stage == "kda.core") return p.ladder;
  std::vector<std::string> shapes;
  for (const auto& c : p.cases)
    if (c.stage == names.stage &&
        std::find(shapes.begin(), shapes.end(), c.shape.text()) == shapes.end())
      shapes.push_back(c.shape.text());
  return shapes;
}

// The shape on which schedule `s` can run, as text; empty if none.
std::string fitted(const std::string& text, const Schedule& s) {
  Shape shape = parse_shape(text);
  if (s.kind == ScheduleKind::resume && s.parameter >= shape.T) return {};
  if (s.kind == ScheduleKind::tp && shape.H % s.parameter != 0) shape.HV = shape.H = s.parameter;
  const bool packs = s.kind == ScheduleKind::varlen || s.kind == ScheduleKind::tp ||
                     s.kind == ScheduleKind::sequential;
  if (!packs) shape.cuts.clear();
  return shape.text();
}

class Selection {
 public:
  void add(Case c, std::uint64_t seed) {
    c.seed = seed;
    if (seen_.insert(c.id()).second) cases_.push_back(std::move(c));
  }
  std::size_t size() const { return cases_.size(); }
  std::vector<Case> take() { return std::move(cases_); }

 private:
  std::set<std::string> seen_;
  std::vector<Case> cases_;
};

// Returns whether anything matched, new or not.
bool add_matching(Selection& out, const Profile& p, const std::string& glob,
                  std::int64_t seed_count) {
  if (is_full_id(glob)) {
    const Case c = parse_case(glob);
    check_family(c);
    out.add(c, c.seed);
    return true;
  }
  bool matched = false;
  const auto seeds = seeds_for(glob, seed_count);
  const auto consider = [&](Case c, const std::string& pattern) {
    for (auto seed : seeds) {
      c.seed = seed;
      if (!glob_match(pattern, c.id())) continue;
      out.add(c, seed);
      matched = true;
    }
  };
  std::string pattern = glob;
  if (const auto parts = literal_parts(glob); !parts.empty()) {
    const std::string combination =
        parts[0] + "/" + parts[1] + "/" + parts[2] + "/" + parts[3] + "/";
    const auto& stage_schedules = stage(parts[0]).schedules;
    const Schedule schedule = parse_schedule(parts[1]);
    const auto word = schedules()[static_cast<std::size_t>(schedule.kind)].word;
    if (std::find(stage_schedules.begin(), stage_schedules.end(), word) == stage_schedules.end())
      throw UsageError("schedule", parts[1], "does not apply to stage " + parts[0]);
    Case names;
    names.stage = parts[0];
    names.family = parts[3];
    check_family(names);
    pattern = parts[0] + "/" + schedule.text() + "/" + parse_plan_pair(parts[2]).text() + "/" +
              parts[3] + "/" + parts[4];
    for (const auto& text : ladder_of(p, names))
      if (const auto shape = fitted(text, schedule); !shape.empty())
        consider(parse_case(combination + shape + "/seed=0"), pattern);
  }
  for (const auto& c : p.cases) consider(c, pattern);
  for (const auto& control : p.controls) consider(control.c, pattern);
  return matched;
}

}  // namespace

const Profile& profile(std::string_view name) {
  for (const auto& p : profiles())
    if (p.name == name) return p;
  throw UsageError("profile", std::string(name), "known are quick, merge, release, layer, study");
}

std::vector<std::uint64_t> seeds_of(std::int64_t count) {
  if (count < 1) throw UsageError("seeds", std::to_string(count), "must be at least 1");
  std::vector<std::uint64_t> seeds{kProfileSeed};
  for (std::uint64_t s = 1; static_cast<std::int64_t>(seeds.size()) < count; ++s)
    if (s != kProfileSeed) seeds.push_back(s);
  return seeds;
}

std::vector<Case> select(const Profile& p, const std::vector<std::string>& globs,
                         std::int64_t seed_count) {
  Selection out;
  if (globs.empty())
    for (auto seed : seeds_of(seed_count))
      for (const auto& c : p.cases) out.add(c, seed);
  for (const auto& glob : globs) {
    check_form(glob);
    if (!add_matching(out, p, glob, seed_count))
      throw UsageError("glob", glob, "matches no case of profile " + p.name);
  }
  return out.take();
}

}  // namespace numgate
