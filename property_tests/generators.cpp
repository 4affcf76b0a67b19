#include "property_tests/generators.h"

#include <algorithm>

#include "core/errors.h"
#include "property_tests/families.h"

namespace numgate {
namespace {

// The choices that make up a case. Each shrinks by itself, toward zero, so smaller must mean
// simpler.
struct Choices {
  std::size_t stage, schedule, plan, family;
  std::int64_t T, parameter, H, group, width, first_cut, second_cut;
  bool f32, plain, random_state;
  std::uint64_t seed;
};

// 1 to 400, half of them within 2 of a multiple of 16.
rc::Gen<std::int64_t> lengths() {
  const auto near = rc::gen::map(
      rc::gen::tuple(rc::gen::inRange<std::int64_t>(1, 26), rc::gen::inRange<std::int64_t>(-2, 3)),
      [](const auto& x) {
        return std::min<std::int64_t>(std::get<0>(x) * 16 + std::get<1>(x), 400);
      });
  return rc::gen::oneOf(rc::gen::inRange<std::int64_t>(1, 401), near);
}

template <class Values>
auto pick(const Values& values, std::size_t choice) {
  return values[choice % values.size()];
}

Case make_case(const Choices& x, const std::vector<std::string>& plans) {
  Case c;
  c.stage = x.stage % 2 ? "kda.prefill" : "kda.core";
  c.plan = parse_plan_pair(pick(plans, x.plan));
  std::vector<std::string_view> names;
  for (const auto& f : families())
    if (f.applies_to(c.stage)) names.push_back(f.name);
  c.family = pick(names, x.family);
  Shape& s = c.shape;
  s.T = x.T;
  s.H = x.H;
  s.HV = x.H * x.group;
  s.K = x.width == 1 ? 128 : 64;
  s.V = x.width == 0 ? 64 : 128;
  s.in = x.f32 ? Dtype::f32 : Dtype::bf16;
  s.gate = x.plain ? Gate::plain : Gate::bounded;
  s.state0 = x.random_state ? State0::random : State0::zero;
  c.seed = x.seed;
  c.schedule.kind = schedules()[x.schedule % schedules().size()].kind;
  c.schedule.parameter = x.parameter;
  switch (c.schedule.kind) {
    case ScheduleKind::cp:
      c.schedule.parameter = 1 + x.parameter % 16;
      break;
    case ScheduleKind::replay:
      c.schedule.parameter = 1 + x.parameter % 32;
      break;
    case ScheduleKind::tp:
      c.schedule.parameter = s.H;
      break;
    case ScheduleKind::resume:
      if (s.T == 1) s.T = 2;
      c.schedule.parameter = 1 + x.parameter % (s.T - 1);
      break;
    case ScheduleKind::varlen:
      if (s.T > 1) {
        s.cuts = {1 + x.first_cut % (s.T - 1), 1 + x.second_cut % (s.T - 1)};
        std::sort(s.cuts.begin(), s.cuts.end());
        s.cuts.erase(std::unique(s.cuts.begin(), s.cuts.end()), s.cuts.end());
      }
      break;
    case ScheduleKind::chunked:
      break;
    default:
      c.schedule.parameter = 0;
  }
  return parse_case(c.id());
}

}  // namespace

std::vector<std::string> generated_plans() {
  std::vector<std::string> plans{"reference", "production", "tf32", "tf32x3"};
  for (const auto& site : kSites)
    for (const char* format : {"bf16", "tf32", "tf32rna", "tf32x3", "diag_tf32x3", "bf16x3"}) {
      const std::string plan = "reference+" + std::string(site.name) + "=" + format;
      try {
        if (site.site != Site::output) plans.push_back(parse_plan(plan).name);
      } catch (const UsageError&) {  // a format that the site does not take
      }
    }
  return plans;
}

rc::Gen<Case> any_case(std::vector<std::string> plans) {
  using rc::gen::inRange;
  const auto index = [](std::int64_t end) { return inRange<std::int64_t>(0, end); };
  const auto choice = [](std::size_t end) { return inRange<std::size_t>(0, end); };
  const auto flag = inRange(0, 2);
  const auto all =
      rc::gen::tuple(choice(2), choice(schedules().size()), choice(plans.size()),
                     choice(families().size()), lengths(), inRange<std::int64_t>(1, 401),
                     inRange<std::int64_t>(1, 4), inRange<std::int64_t>(1, 3), index(3), index(400),
                     index(400), flag, flag, flag, inRange<std::uint64_t>(0, 1u << 20));
  // At full size from the start: a range grows with RapidCheck's size, and rare schedules would be
  // rarer.
  return rc::gen::resize(
      rc::kNominalSize, rc::gen::map(all, [plans = std::move(plans)](const auto& x) {
        const auto& [stage, schedule, plan, family, T, parameter, H, group, width, first, second,
                     f32, plain, random, seed] = x;
        return make_case({stage, schedule, plan, family, T, parameter, H, group, width, first,
                          second, f32 != 0, plain != 0, random != 0, seed},
                         plans);
      }));
}

void showValue(const Case& c, std::ostream& out) { out << c.id(); }

}  // namespace numgate
