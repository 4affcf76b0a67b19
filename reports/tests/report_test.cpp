// Controls, exit codes, the JSON form and its schema.
#include "reports/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "reports/files.h"
#include "reports/judge.h"
#include "reports/render.h"
#include "reports/tests/evidence.h"
#include "reports/tests/sample_report.h"

namespace numgate {
namespace {

using nlohmann::json;

const std::string kId = "kda.prefill/sequential/production:tf32/needle/T=512,H=1/seed=1";

Report report_of(const std::vector<CellResult>& cells, const std::vector<Control>& controls = {}) {
  Report report;
  report.policy = default_policy();
  report.cells = cells;
  report.controls = controls;
  conclude(report);
  return report;
}

CellResult passing(const std::string& id = kId) { return judge(healthy(id), default_policy()); }

CellResult failing() {
  CellEvidence evidence = healthy(kId);
  evidence.tensors[0].kernel.squares[7] *= 9;
  return judge(evidence, default_policy());
}

TEST(Report, VerdictsAndExitCodes) {
  const Case c = parse_case(kId);
  const CellResult timeout = unjudged(c, "timeout", ""), skipped = unjudged(c, "coverage", ""),
                   oracle = unjudged(c, "oracle", ""), broken = unjudged(c, "internal", "");
  const auto expect = [](const std::vector<CellResult>& cells, Verdict verdict, ExitCode code) {
    const Report report = report_of(cells);
    EXPECT_EQ(report.verdict, verdict);
    EXPECT_EQ(exit_code(report), code);
  };
  expect({}, Verdict::NOT_VERIFIED, ExitCode::incomplete);
  expect({passing()}, Verdict::PASS, ExitCode::pass);
  expect({passing(), skipped}, Verdict::NOT_VERIFIED, ExitCode::incomplete);
  expect({timeout, passing(), skipped}, Verdict::TIMEOUT, ExitCode::timeout);
  expect({timeout, failing(), skipped}, Verdict::FAIL, ExitCode::gate_violated);
  expect({broken, failing()}, Verdict::ERROR, ExitCode::internal);
  expect({oracle, failing(), broken}, Verdict::ERROR, ExitCode::oracle_invalid);
}

TEST(Report, Controls) {
  const auto run = [](const CellResult& cell, const std::vector<std::string>& rules) {
    return report_of({cell}, {{kId, rules, "planted"}});
  };
  Control named{parse_case(kId).id(), {"contract"}, "planted"};
  Report report = report_of({failing()}, {named});
  EXPECT_EQ(report.cells[0].verdict, Verdict::CAUGHT);
  EXPECT_TRUE(report.controls[0].caught);
  EXPECT_EQ(exit_code(report), ExitCode::pass);

  report = report_of({passing()}, {named});
  EXPECT_TRUE(report.cells[0].control_missed);
  EXPECT_EQ(report.verdict, Verdict::ERROR);
  EXPECT_EQ(exit_code(report), ExitCode::oracle_invalid);

  named.rules = {"contract", "accuracy"};  // it fails, but not for all the reasons named
  report = report_of({failing()}, {named});
  EXPECT_EQ(report.cells[0].verdict, Verdict::FAIL);
  EXPECT_EQ(exit_code(report), ExitCode::oracle_invalid);

  report = report_of({unjudged(parse_case(kId), "timeout", "")}, {named});
  EXPECT_FALSE(report.controls[0].missed);
  EXPECT_EQ(exit_code(report), ExitCode::timeout);

  report = run(passing(), {"contract"});  // the abbreviated id names no cell
  EXPECT_EQ(exit_code(report), ExitCode::incomplete);
}

TEST(Report, AWaiverDoesNotHideAControl) {
  Report report;
  report.policy = default_policy();
  report.policy.waivers = {{"*", "contract", "o", "r", "2027-01-01"}};
  report.cells = {failing()};
  report.controls = {{"*", {"contract"}, "planted"}};
  conclude(report);
  EXPECT_EQ(report.cells[0].verdict, Verdict::CAUGHT);
}

TEST(Report, SampleIsAsMeant) {
  const Report good = sample_report(false);
  EXPECT_EQ(good.verdict, Verdict::PASS);
  EXPECT_EQ(exit_code(good), ExitCode::pass);
  EXPECT_GE(good.cells.size(), 40u);
  const Report bad = sample_report(true);
  EXPECT_EQ(bad.verdict, Verdict::FAIL);
  EXPECT_EQ(exit_code(bad), ExitCode::gate_violated);
}

TEST(ReportJson, RoundTrip) {
  Report report = sample_report(true);
  report.cells[0].score.max = std::numeric_limits<double>::infinity();
  report.cells[0].error.relative = std::numeric_limits<double>::quiet_NaN();
  report.cells[1].error.relative = 0.1 + 0.2;
  const std::string text = to_json(report);
  const Report back = parse_report(text);
  EXPECT_EQ(to_json(back), text);
  EXPECT_EQ(back.cells.size(), report.cells.size());
  EXPECT_TRUE(std::isinf(back.cells[0].score.max));
  EXPECT_TRUE(std::isnan(back.cells[0].error.relative));
  EXPECT_EQ(back.cells[1].error.relative, 0.1 + 0.2);
}

TEST(ReportJson, ARecordNamesDeviceAndTime) {
  Report report = sample_report(true);
  report.device = "a device", report.driver = "1.2", report.toolkit = "a compiler";
  report.cells[0].timing = {1, 2, 3, 4, 5};
  report.cells[1].timing.truth = 7;
  const json j = json::parse(to_json(report));
  EXPECT_EQ(j["commit"], report.git_commit);
  EXPECT_EQ(j["timing"]["truth"], 10);
  const Report back = parse_report(to_json(report));
  EXPECT_EQ(back.device + back.driver + back.toolkit, "a device1.2a compiler");
  EXPECT_EQ(timing(back).total(), 22);
  // A report of 1.0 has neither.
  json old = j;
  for (const char* member : {"device", "driver", "toolkit", "commit", "timing"}) old.erase(member);
  for (json& cell : old["cells"]) {
    cell.erase("timing");
    for (json& tensor : cell["tensors"]) tensor.erase("error_null");
  }
  EXPECT_EQ(timing(parse_report(old.dump())).total(), 0);
}

TEST(ReportJson, TrimmedRendersTheSame) {
  const Report report = sample_report(true), small = trimmed(report);
  EXPECT_LT(to_json(small).size(), to_json(report).size());
  EXPECT_EQ(render_html(small), render_html(report));
}

TEST(ReportJson, CellsSurviveACheckpoint) {
  const CellResult cell = failing();
  const std::string line = to_json(cell);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(to_json(parse_cell(line)), line);
  EXPECT_EQ(parse_cell(line).states.at(0).null_scores, cell.states.at(0).null_scores);
  EXPECT_THROW(parse_cell(line.substr(0, line.size() / 2)), UsageError);
}

TEST(ReportJson, PromisedMembers) {
  const json j = json::parse(to_json(sample_report(true)));
  for (const json& cell : j["cells"]) {
    EXPECT_TRUE(cell["case"].is_string() && cell["verdict"].is_string() &&
                cell["score"].contains("max"));
    for (const char* member : {"relative", "projected"})
      EXPECT_TRUE(cell["error"].contains(member));
    for (const char* member : {"position", "context"}) EXPECT_TRUE(cell["growth"].contains(member));
    for (const json& reason : cell["reasons"])
      for (const char* member : {"rule", "sites", "rank", "token", "measured", "limit"})
        EXPECT_TRUE(reason.contains(member)) << member;
  }
}

TEST(ReportJson, Schema) {
  const json schema_json = json::parse(report_schema());
  valijson::Schema schema;
  valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_json), schema);
  const auto valid = [&](const json& document) {
    valijson::Validator validator;
    valijson::ValidationResults results;
    const bool ok =
        validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), &results);
    valijson::ValidationResults::Error error;
    std::string text;
    while (results.popError(error)) {
      for (const auto& part : error.context) text += part;
      text += ": " + error.description + "\n";
    }
    return ok ? testing::AssertionSuccess() : testing::AssertionFailure() << text;
  };
  Report report = sample_report(true);
  report.cells[0].score.max = std::numeric_limits<double>::infinity();
  const json good = json::parse(to_json(report));
  EXPECT_TRUE(valid(good));
  EXPECT_TRUE(valid(json::parse(to_json(report_of({})))));
  json bad = good;
  bad.erase("verdict");
  EXPECT_FALSE(valid(bad));
  bad = good;
  bad["cells"][0]["verdict"] = "MAYBE";
  EXPECT_FALSE(valid(bad));
  bad = good;
  bad["cells"][0]["score"]["max"] = "large";
  EXPECT_FALSE(valid(bad));
  bad = good;
  bad["schema_version"] = "2.0";
  EXPECT_FALSE(valid(bad));
}

TEST(ReportJson, TruncatedAnywhere) {
  const std::string text = to_json(sample_report(true));
  for (std::size_t length = 0; length < text.size() - 2; length += 1000)
    EXPECT_THROW(parse_report(std::string_view(text).substr(0, length)), UsageError) << length;
}

// Every member replaced in turn by something else: an error that names it, or a value that is
// admitted.
void mutate(json& root, json& node, const std::string& path) {
  if (node.is_object() || node.is_array())
    for (auto& item : node.items()) {
      // One element of each array is enough.
      if (node.is_array() && item.key() != "0") break;
      mutate(root, item.value(), path + (node.is_array() ? "[0]" : "." + item.key()));
    }
  const json kept = node;
  for (const json& other : {json(), json(-1.5), json("x"), json::array({true}), json::object()}) {
    node = other;
    try {
      parse_report(root.dump());
    } catch (const UsageError& e) {
      EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
    }
  }
  node = kept;
}

TEST(ReportJson, MalformedMembers) {
  Report report = sample_report(true);
  report.cells = {report.cells.back(), report.cells[1]};
  json j = json::parse(to_json(report));
  mutate(j, j, "report");
  j["schema_version"] = "2.0";
  EXPECT_THROW(parse_report(j.dump()), UsageError);
  j["schema_version"] = "1.7";
  j["a later member"] = 1;
  EXPECT_NO_THROW(parse_report(j.dump()));
}

TEST(Files, WrittenWholeOrNotAtAll) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("numgate_files_" + std::to_string(std::rand()));
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "a", "one");
  write_file_atomically(folder / "a", "two");
  EXPECT_EQ(read_file(folder / "a"), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_THROW(write_file_atomically(folder / "none" / "a", "x"), UsageError);
  std::filesystem::create_directory(folder / "taken");
  write_file_atomically(folder / "taken" / "b", "x");
  EXPECT_THROW(write_file_atomically(folder / "taken", "x"), UsageError);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);
  EXPECT_THROW(read_file(folder / "missing"), UsageError);
  EXPECT_THROW(read_file(folder), UsageError);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace numgate
