// kda.conv under its schedules.
#pragma once
#include "partitioning/device_case.h"

namespace numgate {

// Outputs `y` and `conv_state`.
void run_convolution(DeviceCase& device);

}  // namespace numgate
