#include "oracles/shadow.h"

#include <algorithm>

#include "core/errors.h"
#include "oracles/cuda/shadow_run.h"
#include "oracles/forms/walk.h"
#include "oracles/shadow/draws.h"

namespace numgate {

using shadow::ErrorSums;
using shadow::ShadowSites;
using shadow::SiteSet;
using shadow::Sums;

static std::vector<std::string> judged_outputs(const Case& c) {
  std::vector<std::string> names;
  for (const auto& spec : stage(c.stage).outputs)
    if (spec.name != "conv_state") names.emplace_back(spec.name);
  const bool recurrent = c.stage == "kda.prefill" || c.stage == "kda.core";
  if (recurrent && c.schedule.kind == ScheduleKind::cp) names.emplace_back("fold");
  return names;
}

// All draws of both modes and all heads, summed by tensor; `used` collects the sites that round.
static Sums run_draws(const Case& c, const Plan& plan, const TensorMap& inputs, const Truth& truth,
                      const ShadowOptions& options, SiteSet active, SiteSet* used = nullptr) {
  if (options.draws < 2 || options.draws > kMaxDraws)
    throw UsageError("draws", std::to_string(options.draws),
                     "is not between 2 and " + std::to_string(kMaxDraws));
  Sums sums;
  for (const auto& name : judged_outputs(c))
    sums.emplace(name, ErrorSums(c, name, truth, options.draws));
  SiteSet rounded;
  if (options.device == OracleDevice::cuda && team::on_device(c)) {
    team::add_draws(*team::cuda_shadow_device(), c, plan, inputs, truth, options, active, sums,
                    rounded);
  } else {
    const std::int64_t walks = forms::heads_of(c) * 2 * options.draws;
    shadow::Progress progress(options, walks * c.shape.T);
    std::mutex lock;
    shadow::in_parallel(walks, options.threads, [&](std::int64_t i) {
      const shadow::WalkIndex walk(i, options.draws);
      ShadowSites sites(walk.table(c, plan, options.draws, active));
      forms::walk(
          sites, c, inputs, walk.head,
          [&](std::string_view tensor, std::int64_t first, const forms::Matrix<double>& rows) {
            sums.find(std::string(tensor))
                ->second.add(walk.mode, walk.draw, walk.head, first, rows);
            if (shadow::has_tokens(c, tensor)) progress.add(rows.rows());
          });
      const std::lock_guard guard(lock);
      rounded |= sites.used();
    });
  }
  if (used) *used |= rounded;
  return sums;
}

std::map<std::string, TensorShadow> compute_shadow(const Case& c, const Plan& declared,
                                                   const TensorMap& inputs, const Truth& truth,
                                                   const ShadowOptions& options) {
  std::map<std::string, TensorShadow> out;
  for (auto& [name, sums] : run_draws(c, declared, inputs, truth, options, ~SiteSet()))
    out.emplace(name, std::move(sums).finish());
  return out;
}

std::vector<SiteShare> site_shares(const Case& c, const Plan& declared, const TensorMap& inputs,
                                   const Truth& truth, const ShadowOptions& options) {
  SiteSet used;
  std::map<std::string, double> full;
  for (const auto& [name, sums] : run_draws(c, declared, inputs, truth, options, ~SiteSet(), &used))
    full[name] = sums.mean_square();
  std::vector<SiteShare> shares;
  for (const auto& site : kSites) {
    const auto i = static_cast<std::size_t>(site.site);
    if (!used[i]) continue;
    for (const auto& [name, sums] :
         run_draws(c, declared, inputs, truth, options, SiteSet().set(i)))
      shares.push_back({site.site, name, full[name] > 0 ? sums.mean_square() / full[name] : 0});
  }
  std::stable_sort(shares.begin(), shares.end(), [](const SiteShare& a, const SiteShare& b) {
    return a.tensor != b.tensor ? a.tensor < b.tensor : a.share > b.share;
  });
  return shares;
}

TensorMap compute_emulation(const Case& c, const Plan& ran, const TensorMap& inputs) {
  TensorMap out;
  const auto names = judged_outputs(c);
  for (const auto& name : names)
    for (const auto& spec : stage(c.stage).outputs)
      if (spec.name == name || (name == "fold" && spec.name == "state"))
        out.emplace(name, Tensor(Dtype::f64, tensor_shape(spec, c.shape)));
  const std::int64_t heads = forms::heads_of(c);
  shadow::in_parallel(heads, 0, [&](std::int64_t head) {
    ShadowSites sites(ran, {.emulate = true});
    forms::walk(
        sites, c, inputs, head,
        [&](std::string_view tensor, std::int64_t first, const forms::Matrix<double>& rows) {
          Tensor& t = out.find(std::string(tensor))->second;
          const std::int64_t count = shadow::has_tokens(c, tensor) ? rows.rows() : 1,
                             width = rows.size() / count;
          for (std::int64_t r = 0; r < count; ++r)
            std::copy_n(rows.data() + r * width, width,
                        t.as<double>() + ((first + r) * heads + head) * width);
        });
  });
  return out;
}

}  // namespace numgate
