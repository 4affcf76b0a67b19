// kda.prefill and kda.core under every schedule.
#pragma once
#include "partitioning/device_case.h"

namespace numgate {

// Runs the recurrence of `device`'s case; outputs `o`, `o_cast`, `state` and, under cp, `fold`.
void run_recurrence(DeviceCase& device);

// kda.summary: the whole sequence as one segment; outputs `M`, `B`.
void run_summary(DeviceCase& device);

}  // namespace numgate
