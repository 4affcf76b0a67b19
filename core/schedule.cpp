#include "core/schedule.h"

#include <algorithm>
#include <charconv>

#include "core/errors.h"

namespace numgate {

const std::vector<ScheduleInfo>& schedules() {
  static const std::vector<ScheduleInfo> all{
      {ScheduleKind::sequential, "sequential", "sequential", "one call over the whole sequence"},
      {ScheduleKind::chunked, "chunked", "chunked@<tokens>",
       "prefill in pieces with carried state, cuts anywhere"},
      {ScheduleKind::decode, "decode", "decode", "prefill, then token by token"},
      {ScheduleKind::replay, "replay", "replay@<ring>",
       "prefill, then a checkpoint and a ring of records"},
      {ScheduleKind::cp, "cp", "cp<ranks>",
       "contiguous shards, summaries exchanged and folded, local pass rerun"},
      {ScheduleKind::tp, "tp", "tp<ranks>", "heads spread over ranks"},
      {ScheduleKind::varlen, "varlen", "varlen",
       "packed sequences, cut where the shape's `cuts` say"},
      {ScheduleKind::resume, "resume", "resume@<token>",
       "state and conv window restored from a snapshot"},
  };
  return all;
}

static const ScheduleInfo& info(ScheduleKind kind) {
  return schedules()[static_cast<std::size_t>(kind)];
}

static bool has_parameter(ScheduleKind kind) {
  return info(kind).form.find('<') != std::string_view::npos;
}

std::string Schedule::text() const {
  if (!has_parameter(kind)) return std::string(info(kind).word);
  const auto form = info(kind).form;
  return std::string(form.substr(0, form.find('<'))) + std::to_string(parameter);
}

Schedule parse_schedule(std::string_view text) {
  for (const auto& s : schedules()) {
    if (!has_parameter(s.kind)) {
      if (text == s.word) return {s.kind, 0};
      continue;
    }
    const auto head = s.form.substr(0, s.form.find('<'));
    if (!text.starts_with(head)) continue;
    const auto digits = text.substr(head.size());
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (error != std::errc() || end != digits.data() + digits.size() || n < 1)
      throw UsageError("schedule", std::string(text),
                       "is written " + std::string(s.form) + ", a positive number");
    return {s.kind, n};
  }
  throw UsageError("schedule", std::string(text), "unknown; `numgate list schedules` shows them");
}

Equivalence equivalence(const Schedule& s) {
  switch (s.kind) {
    case ScheduleKind::sequential:
    case ScheduleKind::tp:
    case ScheduleKind::varlen:
      return Equivalence::E;
    case ScheduleKind::chunked:
    case ScheduleKind::resume:
      return s.parameter % 64 == 0 ? Equivalence::E : Equivalence::R;
    default:
      return Equivalence::R;
  }
}

std::vector<Segment> segments(const Schedule& s, std::int64_t T) {
  std::vector<Segment> out;
  const auto cut_every = [&](std::int64_t n) {
    for (std::int64_t t = 0; t < T; t += n) out.push_back({t, std::min(t + n, T)});
  };
  switch (s.kind) {
    case ScheduleKind::chunked:
      cut_every(s.parameter);
      break;
    case ScheduleKind::cp: {
      const std::int64_t shard = (T + s.parameter - 1) / s.parameter;
      for (std::int64_t r = 0; r < s.parameter; ++r)
        out.push_back({std::min(r * shard, T), std::min((r + 1) * shard, T)});
      break;
    }
    case ScheduleKind::resume:
      out = {{0, std::min(s.parameter, T)}, {std::min(s.parameter, T), T}};
      break;
    case ScheduleKind::decode:
    case ScheduleKind::replay: {
      const std::int64_t prefix = T - std::min<std::int64_t>(T / 2, 256);
      out = {{0, prefix}, {prefix, T}};
      break;
    }
    default:
      out = {{0, T}};
  }
  return out;
}

}  // namespace numgate
