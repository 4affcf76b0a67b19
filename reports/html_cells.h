// The parts of the page that show single cells.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "reports/report.h"

namespace numgate {

inline constexpr std::size_t kMostArticles = 24;  // failing cells shown with charts

std::string html_text(std::string_view text);  // escaped
std::string breakable(std::string html);       // may break a line after each underscore
const char* verdict_class(Verdict v);          // good, bad or open
const char* verdict_class(const CellResult& cell);
std::string slope_text(const std::optional<Slope>& slope);
std::string ladder_text(const Case& c);  // the id without T and seed-independent defaults

// Where the page shows a cell: its article, or else its row.
std::string cell_anchor(const Report& report, const CellResult& cell);
// Reasons, charts, figures by rank, replay command.
std::string cell_article(const Report& report, const CellResult& cell);
std::string cells_table(const Report& report);
// The data of every article's charts, safe inside a <script>.
std::string charts_json(const Report& report);

}  // namespace numgate
