#include "cli/campaign.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "cli/checkpoint.h"
#include "cli/cost.h"
#include "cli/group.h"
#include "cli/machine.h"
#include "cli/progress.h"
#include "core/errors.h"
#include "partitioning/device_memory.h"
#include "property_tests/profiles.h"
#include "reports/files.h"
#include "reports/render.h"

namespace numgate {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Work {
  Case c;
  bool is_control = false;
};

// Cells in the order in which they run: those that share inputs and truth together, small ones
// first.
std::vector<Work> plan_work(const CampaignOptions& o, Report& report) {
  const Profile& p = profile(o.profile);
  std::vector<Work> work;
  if (o.globs.empty())
    for (const PlantedFault& fault : p.controls) {
      work.push_back({fault.c, true});
      report.controls.push_back({fault.c.id(), fault.rules, fault.why, false});
    }
  std::set<std::string> known;
  for (const Work& w : work) known.insert(w.c.id());
  for (const Case& c : select(p, o.globs, o.seeds))
    if (known.insert(c.id()).second) work.push_back({c, false});
  for (const Work& w : work) check_family(w.c);
  std::stable_sort(work.begin(), work.end(), [](const Work& a, const Work& b) {
    return std::pair(a.c.shape.T * a.c.shape.HV, a.c.group()) <
           std::pair(b.c.shape.T * b.c.shape.HV, b.c.group());
  });
  return work;
}

// Cases that differ in T alone form a ladder, whose smallest member is run twice.
std::string ladder_key(const Case& c) {
  Case any = c;
  any.shape.T = 1;
  any.shape.cuts.clear();
  return any.id();
}

// The smallest T of each ladder.
std::map<std::string, std::int64_t> smallest_lengths(const std::vector<Work>& work) {
  std::map<std::string, std::int64_t> smallest;
  for (const Work& w : work) {
    auto& T = smallest.try_emplace(ladder_key(w.c), w.c.shape.T).first->second;
    T = std::min(T, w.c.shape.T);
  }
  return smallest;
}

const std::string& oracle_of(const CampaignOptions& o) {
  return o.oracle.empty() ? o.backend : o.oracle;
}

}  // namespace

void print_plan(const CampaignOptions& o) {
  Report unused;
  const std::vector<Work> work = plan_work(o, unused);
  const auto smallest = smallest_lengths(work);
  CostModel model(oracle_of(o) == "cuda");
  Timing sum;
  const auto line = [](const Timing& t, double total, const std::string& what) {
    fmt::print("{:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f}  {:>8.1f}  {}\n", t.inputs, t.kernels,
               t.truth, t.shadow, t.judge, total, what);
  };
  fmt::print("{:>8} {:>8} {:>8} {:>8} {:>8}  {:>8}  case (expected seconds, and their sum)\n",
             "inputs", "kernels", "truth", "shadow", "judge", "sum");
  for (const Work& w : work) {
    const Timing t = model.next(w.c, smallest.at(ladder_key(w.c)) == w.c.shape.T);
    sum += t;
    line(t, sum.total(), (w.is_control ? "control " : "") + w.c.id());
  }
  line(sum, sum.total(), fmt::format("{} cells", work.size()));
}

void write_report(const Report& report, const std::filesystem::path& out) {
  write_file_atomically(out / "report.html", render_html(report));
  write_file_atomically(out / "junit.xml", render_junit(report));
  write_file_atomically(out / "summary.md", render_markdown(report));
  write_file_atomically(out / "report.json", to_json(report));
}

Report run_campaign(const CampaignOptions& o) {
  const auto start = Clock::now();
  Report report;
  report.policy = o.policy_file.empty() ? default_policy() : parse_policy(read_file(o.policy_file));
  if (o.target_context > 0) report.policy.target_context = o.target_context;
  report.tool_version = kToolVersion;
  report.git_commit = git_commit();
  report.hardware = hardware();
  report.compiler = compiler();
  report.command = o.command;
  report.profile = o.profile;
  report.backend = o.backend;
  report.started = utc_now();
  if (o.jobs > 0) omp_set_num_threads(o.jobs);

  const std::vector<Work> work = plan_work(o, report);
  const auto backend = make_backend(o.backend);
  report.device = backend->device();
  report.driver = backend->driver();
  report.toolkit = backend->toolkit();
  for (const Work& w : work) head_groups(w.c, *backend);  // raises before any work
  Checkpoint checkpoint(
      o.out,
      fmt::format("numgate {} {} {} oracle {} target {} policy {}", kToolVersion, report.git_commit,
                  o.backend, oracle_of(o), report.policy.target_context,
                  o.policy_file.empty() ? "default" : o.policy_file),
      o.resume);
  for (const char* old : {"report.json", "report.html", "junit.xml", "summary.md"})
    std::filesystem::remove(o.out / old);

  Progress progress(o.quiet);
  const auto smallest = smallest_lengths(work);
  std::unique_ptr<Group> group;
  std::string group_key;
  std::size_t done = 0;
  for (const Work& w : work) {
    const std::string id = w.c.id();
    if (const CellResult* finished = checkpoint.find(id)) {
      report.cells.push_back(*finished);
      ++done;
      continue;
    }
    if (o.timeout > 0 && seconds_since(start) > o.timeout) {
      report.cells.push_back(
          unjudged(w.c, "timeout", fmt::format("not started within {:.0f} s", o.timeout)));
      ++done;
      continue;
    }
    const auto cell_start = Clock::now();
    const auto step = [&](const std::string& what, double fraction) {
      progress.update(done, work.size(), id, what, fraction);
    };
    if (group_key != w.c.group()) {
      group_key = w.c.group();
      GroupOptions options;
      options.oracle = oracle_of(o);
      options.progress = step;
      group = std::make_unique<Group>(w.c, *backend, options);
    }
    group->set_progress(step);
    CellResult cell;
    try {
      const bool twice = smallest.at(ladder_key(w.c)) == w.c.shape.T;
      cell = judge(group->evidence(w.c, twice), report.policy);
    } catch (const UsageError&) {
      throw;
    } catch (const std::exception& e) {
      cell = unjudged(w.c, "internal", e.what());
    }
    cell.seconds = seconds_since(cell_start);
    cell.timing = group->take_timing();
    cell.timing.judge = cell.seconds - cell.timing.total();
    checkpoint.add(cell);
    report.cells.push_back(std::move(cell));
    ++done;
  }
  conclude(report);
  report.seconds = seconds_since(start);
  write_report(report, o.out);
  return report;
}

}  // namespace numgate
