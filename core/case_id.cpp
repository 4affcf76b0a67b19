#include "core/case_id.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/errors.h"

namespace numgate {
namespace {

template <class Int>
Int parse_integer(const std::string& field, std::string_view text, Int low, Int high) {
  Int value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    throw UsageError(
        field, std::string(text),
        "must be an integer from " + std::to_string(low) + " to " + std::to_string(high));
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::vector<std::int64_t> parse_cuts(std::string_view text, std::int64_t T) {
  std::vector<std::int64_t> cuts;
  if (text == "none") return cuts;
  for (auto part : split(text, '+')) {
    cuts.push_back(parse_integer<std::int64_t>("cuts", part, 1, T - 1));
    if (cuts.size() > 1 && cuts.back() <= cuts[cuts.size() - 2])
      throw UsageError("cuts", std::string(text), "must increase");
  }
  return cuts;
}

void use_default_cuts(Shape& s) {
  std::set<std::int64_t> cuts;
  for (std::int64_t c : {s.T / 5, s.T / 5 + 1, s.T / 2})
    if (c > 0 && c < s.T) cuts.insert(c);
  s.cuts.assign(cuts.begin(), cuts.end());
}

}  // namespace

std::string Shape::text() const {
  std::string joined;
  for (auto c : cuts) joined += (joined.empty() ? "" : "+") + std::to_string(c);
  return "T=" + std::to_string(T) + ",H=" + std::to_string(H) + ",HV=" + std::to_string(HV) +
         ",K=" + std::to_string(K) + ",V=" + std::to_string(V) +
         ",in=" + (in == Dtype::bf16 ? "bf16" : "f32") +
         ",gate=" + (gate == Gate::bounded ? "bounded" : "plain") +
         ",state0=" + (state0 == State0::zero ? "zero" : "random") +
         ",cuts=" + (joined.empty() ? "none" : joined);
}

std::vector<Segment> Shape::sequence_segments() const {
  std::vector<Segment> out;
  std::int64_t begin = 0;
  for (auto c : cuts) {
    out.push_back({begin, c});
    begin = c;
  }
  out.push_back({begin, T});
  return out;
}

Shape parse_shape(std::string_view text) {
  constexpr std::int64_t kMaxTokens = std::int64_t{1} << 24, kMaxHeads = 1024;
  Shape s;
  std::set<std::string_view> seen;
  std::string_view cuts = "none";
  for (auto pair : split(text, ',')) {
    const auto eq = pair.find('=');
    if (eq == std::string_view::npos)
      throw UsageError("shape", std::string(pair), "is not key=value");
    const auto key = pair.substr(0, eq), value = pair.substr(eq + 1);
    if (!seen.insert(key).second) throw UsageError("shape", std::string(key), "given twice");
    const auto choice = [&](std::string_view first, std::string_view second) {
      if (value != first && value != second)
        throw UsageError(std::string(key), std::string(value),
                         "must be " + std::string(first) + " or " + std::string(second));
      return value == second;
    };
    if (key == "T")
      s.T = parse_integer<std::int64_t>("T", value, 1, kMaxTokens);
    else if (key == "H")
      s.H = parse_integer<std::int64_t>("H", value, 1, kMaxHeads);
    else if (key == "HV")
      s.HV = parse_integer<std::int64_t>("HV", value, 1, kMaxHeads);
    else if (key == "K")
      s.K = parse_integer<std::int64_t>("K", value, 64, 128);
    else if (key == "V")
      s.V = parse_integer<std::int64_t>("V", value, 64, 128);
    else if (key == "in")
      s.in = choice("bf16", "f32") ? Dtype::f32 : Dtype::bf16;
    else if (key == "gate")
      s.gate = choice("bounded", "plain") ? Gate::plain : Gate::bounded;
    else if (key == "state0")
      s.state0 = choice("zero", "random") ? State0::random : State0::zero;
    else if (key == "cuts")
      cuts = value;
    else
      throw UsageError("shape", std::string(key),
                       "unknown key; known are T H HV K V in gate state0 cuts");
  }
  if (!seen.contains("T")) throw UsageError("shape", std::string(text), "T is missing");
  if (!seen.contains("HV")) s.HV = s.H;
  if (!seen.contains("V")) s.V = s.K;
  if (s.HV % s.H != 0)
    throw UsageError("HV", std::to_string(s.HV), "must be a multiple of H=" + std::to_string(s.H));
  const bool supported =
      (s.K == 64 && s.V == 64) || (s.K == 128 && s.V == 128) || (s.K == 64 && s.V == 128);
  if (!supported)
    throw UsageError("K,V", std::to_string(s.K) + "," + std::to_string(s.V),
                     "supported are 64,64 and 128,128 and 64,128");
  s.cuts = parse_cuts(cuts, s.T);
  return s;
}

std::string Case::id() const {
  return stage + "/" + schedule.text() + "/" + plan.text() + "/" + family + "/" + shape.text() +
         "/seed=" + std::to_string(seed);
}

std::string Case::group() const {
  return stage + "/" + family + "/" + shape.text() + "/seed=" + std::to_string(seed);
}

Case parse_case(std::string_view id) {
  const auto parts = split(id, '/');
  if (parts.size() != 6)
    throw UsageError("case", std::string(id),
                     "has " + std::to_string(parts.size()) +
                         " parts, not the six of stage/schedule/plan/family/shape/seed=N");
  Case c;
  const StageInfo& s = stage(parts[0]);
  c.stage = std::string(parts[0]);
  c.schedule = parse_schedule(parts[1]);
  const auto& word = schedules()[static_cast<std::size_t>(c.schedule.kind)].word;
  if (std::find(s.schedules.begin(), s.schedules.end(), word) == s.schedules.end())
    throw UsageError("schedule", std::string(parts[1]), "does not apply to stage " + c.stage);
  c.plan = parse_plan_pair(parts[2]);
  c.family = std::string(parts[3]);
  c.shape = parse_shape(parts[4]);
  if (!parts[5].starts_with("seed="))
    throw UsageError("seed", std::string(parts[5]), "is written seed=N");
  c.seed = parse_integer<std::uint64_t>("seed", parts[5].substr(5), 0, ~std::uint64_t{0});
  if (c.schedule.kind == ScheduleKind::varlen && c.shape.cuts.empty()) use_default_cuts(c.shape);
  const bool one_sequence = c.schedule.kind != ScheduleKind::varlen &&
                            c.schedule.kind != ScheduleKind::tp &&
                            c.schedule.kind != ScheduleKind::sequential;
  if (one_sequence && !c.shape.cuts.empty())
    throw UsageError("cuts", c.shape.text(),
                     "schedule " + c.schedule.text() + " takes one sequence");
  if (c.schedule.kind == ScheduleKind::tp && c.shape.H % c.schedule.parameter != 0)
    throw UsageError("schedule", c.schedule.text(),
                     "ranks must divide H=" + std::to_string(c.shape.H));
  if (c.schedule.kind == ScheduleKind::resume && c.schedule.parameter >= c.shape.T)
    throw UsageError("schedule", c.schedule.text(),
                     "the boundary must lie below T=" + std::to_string(c.shape.T));
  if (c.schedule.kind == ScheduleKind::replay && c.schedule.parameter > 64)
    throw UsageError("schedule", c.schedule.text(), "a ring holds at most 64 records");
  if (c.schedule.kind == ScheduleKind::cp && c.schedule.parameter > 1024)
    throw UsageError("schedule", c.schedule.text(), "at most 1024 ranks");
  return c;
}

std::vector<std::int64_t> tensor_shape(const TensorSpec& spec, const Shape& s) {
  std::vector<std::int64_t> out;
  for (auto key : split(spec.shape, ' ')) {
    if (key == "N") {
      if (s.sequences() > 1) out.push_back(s.sequences());
      continue;
    }
    out.push_back(key == "T"    ? s.T
                  : key == "H"  ? s.H
                  : key == "HV" ? s.HV
                  : key == "K"  ? s.K
                  : key == "V"  ? s.V
                  : key == "C"  ? s.channels()
                                : parse_integer<std::int64_t>("shape", key, 1, 1 << 20));
  }
  return out;
}

Dtype tensor_dtype(const TensorSpec& spec, const Shape& s) {
  return spec.dtype == "in" ? s.in : Dtype::f32;
}

bool is_full_id(std::string_view text) {
  return text.find_first_of("*?") == std::string_view::npos &&
         std::count(text.begin(), text.end(), '/') == 5;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]))
      ++p, ++t;
    else if (p < pattern.size() && pattern[p] == '*')
      star = p++, mark = t;
    else if (star != std::string_view::npos)
      p = star + 1, t = ++mark;
    else
      return false;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace numgate
