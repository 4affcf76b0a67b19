#include "reports/render.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "reports/files.h"
#include "reports/judge.h"
#include "reports/render_text.h"
#include "reports/tests/sample_report.h"

namespace numgate {
namespace {

const std::string kHostile = "<script>alert('1')</script>&\"`|\x01\x80]]>";

Report hostile_report() {
  Report report = sample_report(true);
  report.cells[0].c.family = kHostile;
  report.cells.back().c.family = kHostile;
  report.cells.back().reasons[0].text = kHostile;
  report.cells.back().reasons[0].sites = {kHostile};
  report.cells.back().replay = kHostile;
  report.command = report.profile = report.git_commit = kHostile;
  report.controls[0].why = kHostile;
  report.policy.waivers[0].reason = kHostile;
  for (TensorResult& tensor : report.cells.back().tensors) tensor.tensor = kHostile;
  return report;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++n;
  return n;
}

TEST(Html, IsSelfContainedAndWhole) {
  const std::string html = render_html(sample_report(true));
  if (const char* path = std::getenv("NUMGATE_SAMPLE_HTML")) write_file_atomically(path, html);
  EXPECT_EQ(html.find("{{"), std::string::npos);
  for (const char* outside : {"src=\"", "<link", "@import", "url("})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  for (const char* part :
       {"This change must not merge", "summary.chain", "CAUGHT", "NOT VERIFIED", "numgate replay",
        "Growth by context", "Signature", "1,048,576", "A. Owner"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  EXPECT_NE(render_html(sample_report(false)).find("This change may merge"), std::string::npos);
}

TEST(Html, EveryLinkHasItsTarget) {
  const std::string html = render_html(sample_report(true));
  for (auto i = html.find("href=\"#"); i != std::string::npos; i = html.find("href=\"#", i + 1)) {
    const auto end = html.find('"', i + 7);
    const std::string target = html.substr(i + 7, end - i - 7);
    EXPECT_EQ(count(html, "id=\"" + target + "\""), 1u) << target;
  }
}

TEST(Html, Escapes) {
  const std::string plain = render_html(sample_report(true)), html = render_html(hostile_report());
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(count(html, "</script>"), count(plain, "</script>"));
  const auto begin = html.find("id=\"charts\">") + 12;
  EXPECT_TRUE(nlohmann::json::accept(html.substr(begin, html.find("</script>", begin) - begin)));
}

TEST(Junit, IsWellFormed) {
  for (const Report& report : {sample_report(true), hostile_report()}) {
    const std::string xml = render_junit(report);
    for (const char c : xml) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
    for (std::size_t i = xml.find("&#"); i != std::string::npos; i = xml.find("&#", i + 1))
      EXPECT_TRUE(xml.compare(i, 5, "&#10;") == 0 || xml.compare(i, 4, "&#9;") == 0)
          << xml.substr(i, 8);
    pugi::xml_document document;
    ASSERT_TRUE(document.load_string(xml.c_str()));
    const auto suite = document.child("testsuites").child("testsuite");
    std::size_t tests = 0, failures = 0;
    for (const auto& test : suite.children("testcase")) {
      ++tests;
      failures += !test.child("failure").empty();
    }
    EXPECT_EQ(tests, report.cells.size());
    EXPECT_EQ(suite.attribute("failures").as_uint(), failures);
    EXPECT_EQ(failures, 2u);
  }
}

TEST(Markdown, StaysWithinItsSize) {
  Report report = sample_report(true);
  const CellResult failed = *failures(report).front();
  for (int i = 0; i < 500; ++i) {
    report.cells.push_back(failed);
    report.cells.back().c.family = "family" + std::to_string(i) + std::string(2000, 'x');
  }
  const std::string markdown = render_markdown(report);
  EXPECT_LE(markdown.size(), 60u * 1024);
  EXPECT_NE(markdown.find("more; report.html"), std::string::npos);
  EXPECT_NE(render_markdown(sample_report(false)).find("# numgate: PASS"), std::string::npos);
  EXPECT_EQ(render_markdown(hostile_report()).find("<script>"), std::string::npos);
}

TEST(Text, Numbers) {
  EXPECT_EQ(number_text(0.01016), "0.0102");
  EXPECT_EQ(number_text(9900.4), "9,900");
  EXPECT_EQ(number_text(1.23e-7), "1.23e-7");
  EXPECT_EQ(number_text(1e9), "1e9");
  EXPECT_EQ(number_text(2), "2");
  EXPECT_EQ(count_text(1048576), "1,048,576");
  EXPECT_EQ(count_text(-999), "-999");
  EXPECT_EQ(count_text(-1000), "-1,000");
}

}  // namespace
}  // namespace numgate
