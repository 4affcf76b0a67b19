// Files compiled into the library (embed.cmake).
#pragma once
#include <string_view>

namespace numgate::embedded {

extern const std::string_view policy_json, report_schema_json;
extern const std::string_view page_html, page_css, page_js, chart_js;

}  // namespace numgate::embedded
