// Schedules: how the work is cut.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numgate {

enum class ScheduleKind : std::uint8_t {
  sequential,
  chunked,
  decode,
  replay,
  cp,
  tp,
  varlen,
  resume
};

// Against its control schedule, `sequential`, a schedule is equal bit by bit (E), up to rounding
// (R) or by design only approximately (Q). PIPELINE 3.
enum class Equivalence : std::uint8_t { E, R, Q };

struct Schedule {
  ScheduleKind kind = ScheduleKind::sequential;
  std::int64_t parameter =
      0;  // chunked: tokens a piece; replay: ring length; cp, tp: ranks; resume: boundary

  std::string text() const;  // `cp8`, `chunked@100`
};

struct ScheduleInfo {
  ScheduleKind kind;
  std::string_view word, form, what;
};
const std::vector<ScheduleInfo>& schedules();

// Raises UsageError for an unknown word, a missing or superfluous parameter, or one below 1.
Schedule parse_schedule(std::string_view text);

// Class of a schedule against `sequential`; cuts on the 64-token chunk grid keep every bit.
Equivalence equivalence(const Schedule& s);

// Tokens of a rank or piece: contiguous, in order, possibly empty.
struct Segment {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

// The pieces in which `s` runs T tokens: cp<R> gives R shards of ceil(T/R) (the last ones may be
// short or empty), chunked@n pieces of n, resume@b two, decode and replay the prefix and then the
// token-by-token tail of min(T/2, 256); the others one.
std::vector<Segment> segments(const Schedule& s, std::int64_t T);

}  // namespace numgate
