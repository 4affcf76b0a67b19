// numgate: a thin front over the campaign and the single-case commands.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/campaign.h"
#include "cli/digests.h"
#include "cli/doctor.h"
#include "cli/machine.h"
#include "cli/oracle.h"
#include "cli/single_case.h"
#include "core/errors.h"
#include "core/plan.h"
#include "property_tests/families.h"
#include "property_tests/profiles.h"
#include "reports/files.h"
#include "reports/growth_table.h"
#include "reports/render.h"
#include "reports/study.h"

namespace numgate {
namespace {

constexpr std::size_t kLargestRecord = 3 << 20;  // bytes that a repository should be asked to keep

void list(const std::string& what) {
  if (what == "stages") {
    for (const auto& s : stages()) {
      fmt::print("{:<14} {}\n", s.name, s.what);
      for (const auto& t : s.inputs)
        fmt::print("    in   {:<12} [{}] {}\n", t.name, t.shape, t.dtype);
      for (const auto& t : s.outputs)
        fmt::print("    out  {:<12} [{}] {}\n", t.name, t.shape, t.dtype);
    }
  } else if (what == "schedules") {
    for (const auto& s : schedules()) fmt::print("{:<18} {}\n", s.form, s.what);
  } else if (what == "plans") {
    for (const auto& p : named_plans()) fmt::print("{:<14} {}\n", p.name, p.what);
    fmt::print("\n{:<14} {:<6}", "site", "kind");
    for (const auto& p : named_plans()) fmt::print(" {:<12}", p.name);
    fmt::print(" what\n");
    for (const auto& s : kSites) {
      fmt::print("{:<14} {:<6}", s.name, s.kind == SiteKind::dot ? "dot" : "store");
      for (const auto& p : named_plans()) fmt::print(" {:<12}", name(parse_plan(p.name)[s.site]));
      fmt::print(" {}\n", s.what);
    }
  } else if (what == "families") {
    for (const auto& f : families()) {
      fmt::print("{:<18} {}\n", f.name, f.exposes);
      for (auto s : f.stages) fmt::print("    {}\n", s);
    }
  } else {
    for (const auto& p : profiles())
      fmt::print("{:<10} {} ({} cases, {} controls)\n", p.name, p.what, p.cases.size(),
                 p.controls.size());
  }
}

void print_cell(const CellResult& cell) {
  fmt::print("{}  {}\n", name(cell.verdict), cell.c.id());
  fmt::print("  relative error {:.3e}, projected {:.3e}, score {:.2f}\n", cell.error.relative,
             cell.error.projected, cell.score.max);
  for (const Reason& r : cell.reasons) fmt::print("  {:<12} {}\n", r.rule, r.text);
}

ExitCode exit_code_of(const CellResult& cell) {
  switch (cell.verdict) {
    case Verdict::PASS:
    case Verdict::CAUGHT:
      return ExitCode::pass;
    case Verdict::FAIL:
      return ExitCode::gate_violated;
    case Verdict::TIMEOUT:
      return ExitCode::timeout;
    case Verdict::NOT_VERIFIED:
      return ExitCode::incomplete;
    case Verdict::ERROR:
      break;
  }
  for (const Reason& r : cell.reasons)
    if (r.rule == "oracle") return ExitCode::oracle_invalid;
  return ExitCode::internal;
}

ExitCode run(const CampaignOptions& options) {
  const Report report = run_campaign(options);
  for (const CellResult& cell : report.cells)
    if (cell.verdict != Verdict::PASS || report.cells.size() <= 12) print_cell(cell);
  fmt::print("{}: {} cells in {:.0f} s\nreport: {}\n", name(report.verdict), report.cells.size(),
             report.seconds,
             std::filesystem::absolute(options.out / "report.html").lexically_normal().string());
  return exit_code(report);
}

// Writes the digests of the digest cases, or compares them with a record.
ExitCode run_digests(const std::string& backend_name, const std::string& record,
                     const std::string& out, bool spread) {
  const auto backend = make_backend(backend_name);
  const Digests recorded = record.empty() ? Digests{} : read_digests(record);
  Digests own;
  int differing = 0;
  for (const Case& c : spread ? digest_spread() : digest_cases()) {
    const std::string d = own[c.id()] = digest(c, *backend);
    const auto found = recorded.find(c.id());
    if (record.empty() || (found != recorded.end() && found->second == d)) continue;
    ++differing;
    fmt::print("{}  {}, recorded {}\n", c.id(), d,
               found == recorded.end() ? "nothing" : found->second);
  }
  if (!record.empty())
    fmt::print("{} of {} digests differ from {}\n", differing, own.size(), record);
  if (!out.empty()) {
    const nlohmann::ordered_json json{
        {"device", backend->device()},
        {"driver", backend->driver()},
        {"toolkit", backend->toolkit()},
        {"commit", git_commit()},
        {"command", "numgate digests --backend " + backend_name + (spread ? " --spread" : "")},
        {"digests", own}};
    write_file_atomically(out, json.dump(1) + "\n");
  }
  return differing == 0 ? ExitCode::pass : ExitCode::gate_violated;
}

ExitCode main_of(int argc, char** argv) {
  CLI::App app{"numgate decides whether a change to an LLM inference kernel may merge."};
  app.set_version_flag("--version", fmt::format("numgate {} ({})", kToolVersion, git_commit()));
  app.require_subcommand(0, 1);  // so that an unknown word is named, see below
  ExitCode code = ExitCode::pass;

  std::string what;
  auto* list_command = app.add_subcommand("list", "Show the words that case ids are made of");
  list_command->add_option("what", what)
      ->required()
      ->check(CLI::IsMember({"stages", "schedules", "plans", "families", "profiles"}));
  list_command->callback([&] { list(what); });

  CampaignOptions campaign;
  for (int i = 0; i < argc; ++i)
    campaign.command += (i ? " " : "") + std::string(i ? argv[i] : "numgate");
  auto* run_command = app.add_subcommand("run", "Run and judge cases, write a report");
  run_command->add_option("cases", campaign.globs,
                          "Globs that filter the profile, or full case ids");
  run_command->add_option("--profile", campaign.profile, "quick, merge, release, layer or study")
      ->capture_default_str();
  run_command->add_option("--backend", campaign.backend, "cpu or cuda")->capture_default_str();
  run_command
      ->add_option("--oracle", campaign.oracle,
                   "Where truth and shadow are computed: cpu or cuda; as --backend without it")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  run_command->add_option("--out", campaign.out, "Directory of the report")->capture_default_str();
  run_command->add_option("--policy", campaign.policy_file,
                          "Policy file; thresholds can only tighten");
  run_command->add_option("--seeds", campaign.seeds, "Seeds a case")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  run_command->add_option("--target-context", campaign.target_context, "Tokens to project to")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  run_command->add_option("--jobs", campaign.jobs, "Threads, 0 for all")
      ->check(CLI::Range(0, 4096));
  run_command
      ->add_option("--timeout", campaign.timeout, "Seconds after which no further cell starts")
      ->check(CLI::NonNegativeNumber);
  run_command->add_flag("--resume", campaign.resume, "Go on where an interrupted run stopped");
  run_command->add_flag("--quiet", campaign.quiet, "No progress");
  bool dry_run = false;
  run_command->add_flag("--dry-run", dry_run,
                        "Print the cells and what they should cost; run none");
  run_command->callback([&] {
    if (dry_run)
      print_plan(campaign);
    else
      code = run(campaign);
  });

  std::string id;
  std::filesystem::path out = "out", file;
  SingleCaseOptions single;
  const auto add_single = [&](const char* word, const char* description) {
    auto* command = app.add_subcommand(word, description);
    command->add_option("case", id, "A full case id")->required();
    command->add_option("--backend", single.backend, "cpu or cuda")->capture_default_str();
    command->add_option("--target-context", single.target_context, "Tokens to project to")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
    command->add_flag("--quiet", single.quiet, "No progress");
    return command;
  };
  auto* replay_command = add_single("replay", "Run one case again and write its report");
  replay_command->add_option("--out", out)->capture_default_str();
  replay_command->callback([&] {
    CampaignOptions one = campaign;
    one.globs = {parse_case(id).id()};
    one.backend = single.backend;
    one.target_context = single.target_context;
    one.quiet = single.quiet;
    one.out = out;
    code = run(one);
  });
  auto* export_command = add_single("export", "Write a case's inputs, outputs, truth and shadow");
  export_command->add_option("--out", out)->capture_default_str();
  export_command->callback([&] {
    export_case(parse_case(id), out, single);
    fmt::print("{}\n", (out / "tensors.safetensors").string());
  });
  auto* judge_command = add_single("judge", "Judge outputs that something else computed");
  judge_command->add_option("--tensors", file, "A safetensors file with the stage's outputs")
      ->required();
  judge_command->callback([&] {
    const CellResult cell = judge_tensors(parse_case(id), file, single);
    print_cell(cell);
    code = exit_code_of(cell);
  });
  auto* explain_command = add_single("explain", "Say which site is to blame, and where");
  explain_command->callback([&] { fmt::print("{}", explain_case(parse_case(id), single)); });

  std::filesystem::path report_file, html, junit, markdown, record_file;
  auto* render_command = app.add_subcommand("render", "Render a report.json");
  render_command->add_option("report", report_file)->required();
  render_command->add_option("--html", html);
  render_command->add_option("--junit", junit);
  render_command->add_option("--markdown", markdown);
  render_command->add_option("--json", record_file,
                             "A record: the report, without the curves of passed cells if large");
  render_command->callback([&] {
    const Report report = parse_report(read_file(report_file));
    if (html.empty() && junit.empty() && markdown.empty() && record_file.empty())
      fmt::print("{}", render_markdown(report));
    if (!html.empty()) write_file_atomically(html, render_html(report));
    if (!junit.empty()) write_file_atomically(junit, render_junit(report));
    if (!markdown.empty()) write_file_atomically(markdown, render_markdown(report));
    if (!record_file.empty()) {
      std::string text = to_json(report);
      if (text.size() > kLargestRecord) text = to_json(trimmed(report));
      write_file_atomically(record_file, text);
    }
  });

  auto* growth_command = app.add_subcommand(
      "growth", "Errors by context: fitted up to 65,536 tokens, projected to the target, measured");
  growth_command->add_option("report", report_file, "A report.json")->required();
  growth_command->callback(
      [&] { fmt::print("{}", growth_text(parse_report(read_file(report_file)))); });

  std::string record, digests_out, digests_backend = "cpu";
  auto* digests_command = app.add_subcommand(
      "digests", "Digest every kernel's outputs, to compare backends bit by bit");
  digests_command->add_option("--backend", digests_backend, "cpu or cuda")->capture_default_str();
  digests_command->add_option("--check", record, "A record to compare with");
  digests_command->add_option("--out", digests_out, "File to write");
  bool spread = false;
  digests_command->add_flag("--spread", spread, "Only a few cases that together have every kernel");
  digests_command->callback(
      [&] { code = run_digests(digests_backend, record, digests_out, spread); });

  std::vector<std::filesystem::path> study_reports;
  std::filesystem::path study_out;
  auto* study_command = app.add_subcommand(
      "study", "Distributions of scores, growth and errors over the seeds of reports");
  study_command->add_option("reports", study_reports, "report.json files")->required();
  study_command->add_option("--out", study_out, "File to write")->required();
  study_command->callback([&] {
    std::vector<Report> reports;
    for (const auto& path : study_reports) reports.push_back(parse_report(read_file(path)));
    const nlohmann::ordered_json json{
        {"device", hardware()},
        {"driver", "none"},
        {"toolkit", compiler()},
        {"commit", git_commit()},
        {"command", reports.front().command},
        {"distributions", nlohmann::ordered_json::parse(study_json(reports))}};
    write_file_atomically(study_out, json.dump(1) + "\n");
  });

  DoctorOptions doctor_options;
  auto* doctor_command =
      app.add_subcommand("doctor", "Say what this machine can run, and check it");
  doctor_command->add_option("--backend", doctor_options.backend,
                             "The one to check: cpu or cuda; cuda where there is one");
  doctor_command->add_option("--out", doctor_options.out, "File to write");
  doctor_command->callback([&] { code = doctor(doctor_options); });

  OracleOptions oracle;
  oracle.command = campaign.command;
  auto* oracle_command =
      app.add_subcommand("oracle", "Measure and check the double-double truth of a whole layer");
  oracle_command->add_option("--backend", oracle.backend, "cpu or cuda")->capture_default_str();
  oracle_command->add_option("--family", oracle.family)->capture_default_str();
  oracle_command->add_option("--T", oracle.tokens, "Tokens")->capture_default_str();
  oracle_command->add_option("--heads", oracle.heads, "Heads")->capture_default_str();
  oracle_command
      ->add_option("--period", oracle.period, "Generate so many tokens and repeat them; 0: all")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24))
      ->capture_default_str();
  oracle_command
      ->add_option("--audit-threads", oracle.audit_threads,
                   "Threads that walk an audited column; 0: as many as fit")
      ->check(CLI::IsMember({0, 1, 2, 4, 8}))
      ->capture_default_str();
  oracle_command->add_option("--out", oracle.out, "File to write");
  oracle_command->callback([&] { run_oracle(oracle); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return static_cast<ExitCode>(app.exit(e));  // --help, --version
    fmt::print(stderr, "numgate: {}\n", e.what());
    return ExitCode::usage;
  }
  if (app.get_subcommands().empty())
    throw UsageError("command", "", "is missing; `numgate --help` shows them");
  return code;
}

}  // namespace
}  // namespace numgate

int main(int argc, char** argv) {
  using numgate::ExitCode;
  const auto fail = [](ExitCode code, const char* what) {
    fmt::print(stderr, "numgate: {}\n", what);
    return static_cast<int>(code);
  };
  try {
    return static_cast<int>(numgate::main_of(argc, argv));
  } catch (const numgate::UsageError& e) {
    return fail(ExitCode::usage, e.what());
  } catch (const numgate::OracleError& e) {
    return fail(ExitCode::oracle_invalid, e.what());
  } catch (const std::exception& e) {
    return fail(ExitCode::internal, e.what());
  }
}
