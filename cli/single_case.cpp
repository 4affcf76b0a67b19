#include "cli/single_case.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/group.h"
#include "cli/machine.h"
#include "cli/progress.h"
#include "cli/safetensors.h"
#include "core/errors.h"
#include "core/windows.h"
#include "reports/files.h"
#include "reports/policy.h"

namespace numgate {
namespace {

struct Session {
  Session(const Case& c, const SingleCaseOptions& o, bool keep_low = false)
      : progress(o.quiet), backend(make_backend(o.backend)), policy(default_policy()) {
    check_family(c);
    if (o.target_context > 0) policy.target_context = o.target_context;
    GroupOptions options;
    options.oracle = o.backend;
    options.keep_low = keep_low;
    options.progress = [this, id = c.id()](const std::string& step, double f) {
      progress.update(0, 1, id, step, f);
    };
    group = std::make_unique<Group>(c, *backend, options);
  }
  Progress progress;
  std::unique_ptr<kernels::Backend> backend;
  Policy policy;
  std::unique_ptr<Group> group;
};

Tensor f64_tensor(std::vector<std::int64_t> shape, std::span<const double> values) {
  Tensor t(Dtype::f64, std::move(shape));
  std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
  return t;
}

// Relative error of a tensor, the largest over heads and ranks.
double relative_error(const TensorProfile& p, const TensorError& e) {
  std::map<std::pair<std::int64_t, std::int32_t>, std::pair<double, double>> sums;
  for (std::size_t w = 0; w < p.keys.size(); ++w) {
    auto& [error, truth] = sums[{p.keys[w].head, p.keys[w].rank}];
    error += e.squares[w], truth += p.truth_squares[w];
  }
  double worst = 0;
  for (const auto& [key, s] : sums)
    if (s.first > 0) worst = std::max(worst, std::sqrt(s.first / s.second));
  return worst;
}

}  // namespace

void export_case(const Case& c, const std::filesystem::path& out,
                 const SingleCaseOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(out, error);
  write_file_atomically(out / "case.json",
                        nlohmann::ordered_json{{"case", c.id()}}.dump());  // --out is writable
  Session s(c, options, true);
  TensorMap tensors = s.group->inputs();
  const Observation seen = s.group->run(c);
  nlohmann::ordered_json outputs;
  for (const auto& [name, values] : seen.outputs) {
    const TruthTensor& truth = s.group->truth_of(name);
    tensors.emplace(name, values);
    tensors.emplace("truth." + name + ".hi", f64_tensor(truth.shape, truth.hi));
    tensors.emplace("truth." + name + ".lo", f64_tensor(truth.shape, truth.lo));
    auto rows = truth.shape;
    rows.pop_back();
    tensors.emplace("truth." + name + ".radius", f64_tensor(rows, truth.radius));
    const auto& shadows = s.group->shadow(c, c.plan.declared);
    if (!shadows.contains(name)) continue;
    const OutputLayout layout = output_layout(c, name, truth.shape);
    const auto row_count = layout.is_state
                               ? static_cast<std::int64_t>(layout.keys.size())
                               : static_cast<std::int64_t>(truth.hi.size()) / layout.width;
    tensors.emplace("shadow." + name + ".rms",
                    f64_tensor({row_count}, shadow_rms(layout, row_count, shadows.at(name))));
    outputs.push_back(name);
  }
  write_safetensors(out / "tensors.safetensors", tensors);
  const CellResult cell = judge(s.group->evidence(c, seen), s.policy);
  write_file_atomically(out / "case.json", nlohmann::ordered_json{{"case", c.id()},
                                                                  {"tool_version", kToolVersion},
                                                                  {"commit", git_commit()},
                                                                  {"backend", options.backend},
                                                                  {"outputs", outputs},
                                                                  {"verdict", name(cell.verdict)}}
                                                   .dump(2) +
                                               "\n");
}

CellResult judge_tensors(const Case& c, const std::filesystem::path& file,
                         const SingleCaseOptions& options) {
  const TensorMap given = read_safetensors(file);
  Session s(c, options);
  for (const auto& [name, own] : s.group->inputs()) {
    const auto found = given.find(name);
    if (found != given.end() &&
        (found->second.shape != own.shape || found->second.bytes != own.bytes))
      throw UsageError("tensors", name, "is not this case's input");
  }
  Observation seen;
  for (const auto& spec : stage(c.stage).outputs) {
    const std::string name(spec.name);
    const auto found = given.find(name);
    if (found == given.end()) throw UsageError("tensors", name, "is missing from " + file.string());
    if (found->second.shape != tensor_shape(spec, c.shape))
      throw UsageError("tensors", name, "has another shape than the case");
    seen.outputs.emplace(name, found->second);
  }
  if (const auto fold = given.find("fold");
      fold != given.end() && c.schedule.kind == ScheduleKind::cp)
    seen.outputs.emplace("fold", fold->second);
  return judge(s.group->evidence(c, seen), s.policy);
}

std::string explain_case(const Case& c, const SingleCaseOptions& options) {
  Session s(c, options);
  std::string text = c.id() + "\n";
  const auto errors = [&](const Plan& ran) {
    Case variant = c;
    variant.plan.ran = ran;
    std::map<std::string, double> relative;
    const Observation seen = s.group->run(variant);
    for (const auto& [tensor, values] : seen.outputs) {
      if (!s.group->shadow(c, c.plan.declared).contains(tensor)) continue;
      const TruthTensor& truth = s.group->truth_of(tensor);
      TensorProfile p;
      const OutputLayout layout = output_layout(c, tensor, truth.shape);
      p.keys = layout.keys;
      p.truth_squares = truth_squares(layout, truth);
      relative[tensor] = relative_error(p, measure(layout, values, truth));
    }
    return relative;
  };
  const auto ran = errors(c.plan.ran), declared = errors(c.plan.declared);
  text += fmt::format("\nrelative error {:>14} {:>14}\n", "as run", "as declared");
  for (const auto& [tensor, e] : ran)
    text += fmt::format("  {:<12} {:>14.3e} {:>14.3e}\n", tensor, e, declared.at(tensor));

  const auto sites = c.plan.misdeclared();
  if (sites.empty()) {
    text += "\nEvery site runs as declared.\n";
  } else {
    text +=
        fmt::format("\n{:<16} {:<10} {:<10} {:<8} {:>22} {:>22}\n", "misdeclared site", "declared",
                    "ran", "tensor", "error left if restored", "error it alone leaves");
    for (Site site : sites) {
      Plan restored = c.plan.ran, alone = c.plan.declared;
      restored[site] = c.plan.declared[site];
      alone[site] = c.plan.ran[site];
      const auto without = errors(restored), only = errors(alone);
      for (const auto& [tensor, e] : without)
        text += fmt::format("{:<16} {:<10} {:<10} {:<8} {:>22.3e} {:>22.3e}\n", name(site),
                            name(c.plan.declared[site]), name(c.plan.ran[site]), tensor, e,
                            only.at(tensor));
    }
  }
  text += "\nshare of each site in the shadow (mean square, one site rounding at a time)\n";
  for (const SiteShare& share :
       site_shares(c, c.plan.declared, s.group->inputs(), s.group->truth(), {}))
    if (share.share > 1e-4)
      text += fmt::format("  {:<8} {:<16} {:>8.2f} %\n", share.tensor, name(share.site),
                          100 * share.share);

  const CellResult cell = judge(s.group->evidence(c, false), s.policy);
  text += fmt::format("\nverdict {}\n", name(cell.verdict));
  for (const Reason& r : cell.reasons) {
    text += fmt::format("  {:<12} {}\n", r.rule, r.text);
    if (r.token && r.rank)
      text += fmt::format(
          "    first beyond budget: {}, rank {}, head {}, token {}, chunk {} of its rank\n",
          r.tensor, *r.rank, r.head, *r.token,
          (*r.token - ranks_of(c).at(static_cast<std::size_t>(*r.rank)).begin) / 64);
  }
  s.progress.clear();
  return text;
}

}  // namespace numgate
