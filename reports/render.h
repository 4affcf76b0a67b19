// The report for readers: a page, a test log, a summary.
#pragma once
#include <string>

#include "reports/report.h"

namespace numgate {

// One self-contained page; needs no network, and no JavaScript but for its charts.
std::string render_html(const Report& report);
// One <testsuite>, a <testcase> per cell.
std::string render_junit(const Report& report);
// At most 60 KiB: the verdict, the matrix, the worst ten failures and a count of the others.
std::string render_markdown(const Report& report);

}  // namespace numgate
