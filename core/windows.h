// How rows are gathered into windows.
#pragma once
#include <vector>

#include "core/case_id.h"
#include "core/profile.h"

namespace numgate {

inline constexpr std::int64_t kWindowTokens = 64, kShortestWindow = 8;

// The segments whose ranks count separately: packed sequences of a varlen shape, else the
// schedule's pieces.
std::vector<Segment> ranks_of(const Case& c);

// Windows of a sequence output with `heads` rows a token, ordered by head, rank, token.
std::vector<WindowKey> token_windows(const Case& c, std::int64_t heads);

// Windows of a final state: ordered by sequence (its rank), head.
std::vector<WindowKey> state_windows(const Case& c, std::int64_t heads);

}  // namespace numgate
