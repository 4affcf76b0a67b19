// Synthetic evidence: profiles whose scores, nulls and errors are known by construction.
#pragma once
#include <functional>
#include <string>

#include "reports/judge.h"

namespace numgate {

inline constexpr double kShadowError =
    1e-4;  // relative error that the shadow explains, in every window

// A sequence output over the case's token windows whose score in window `key` is score(key) and
// whose rows all have token score 1. Mode D is kept; draws differ from window to window by a few
// percent.
TensorProfile sequence_profile(const Case& c, std::int64_t heads,
                               const std::function<double(const WindowKey&)>& score);
// Final states with the given score.
TensorProfile state_profile(const Case& c, std::int64_t heads, double score);

// Gives a profile a control with error `error` (a multiple of the shadow) and a schedule shadow of
// `shadow` times the declared plan's.
void add_control(TensorProfile& tensor, double error, double shadow);

// o and state of a healthy run, with controls where the schedule needs them.
CellEvidence healthy(const std::string& id);

bool has_rule(const CellResult& cell, const std::string& rule);
Reason reason(const CellResult& cell, const std::string& rule);  // the first; throws if none

}  // namespace numgate
