// A synthetic report of a whole campaign: every verdict, a ladder, the founding fault as a control.
#pragma once
#include "reports/report.h"

namespace numgate {

// Concluded. With `broken`, cells fail, time out and go unverified; without, it passes.
Report sample_report(bool broken);

}  // namespace numgate
