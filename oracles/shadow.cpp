#include "oracles/shadow.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <exception>
#include <mutex>

#include "core/errors.h"
#include "oracles/forms/walk.h"
#include "oracles/shadow/error_sums.h"
#include "oracles/shadow/shadow_sites.h"

namespace numgate {

using shadow::Draw;
using shadow::ErrorSums;
using shadow::Reading;
using shadow::ShadowSites;
using SiteSet = std::bitset<kSiteCount>;

static std::vector<std::string> judged_outputs(const Case& c) {
  std::vector<std::string> names;
  for (const auto& spec : stage(c.stage).outputs)
    if (spec.name != "conv_state") names.emplace_back(spec.name);
  const bool recurrent = c.stage == "kda.prefill" || c.stage == "kda.core";
  if (recurrent && c.schedule.kind == ScheduleKind::cp) names.emplace_back("fold");
  return names;
}

// Runs task(i) for i < n on `threads` threads; the first exception is rethrown.
template <class Task>
static void in_parallel(std::int64_t n, int threads, Task task) {
  std::exception_ptr failure;
  std::mutex lock;
#pragma omp parallel for schedule(dynamic) \
    num_threads(threads > 0 ? threads : omp_get_max_threads())
  for (std::int64_t i = 0; i < n; ++i) {
    try {
      task(i);
    } catch (...) {
      const std::lock_guard guard(lock);
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

// All draws of both modes and all heads, summed by tensor; `used` collects the sites that round.
static std::map<std::string, ErrorSums> run_draws(const Case& c, const Plan& plan,
                                                  const TensorMap& inputs, const Truth& truth,
                                                  const ShadowOptions& options, SiteSet active,
                                                  SiteSet* used = nullptr) {
  if (options.draws < 2 || options.draws > kMaxDraws)
    throw UsageError("draws", std::to_string(options.draws),
                     "is not between 2 and " + std::to_string(kMaxDraws));
  std::map<std::string, ErrorSums> sums;
  for (const auto& name : judged_outputs(c))
    sums.emplace(name, ErrorSums(c, name, truth, options.draws));

  const std::int64_t heads = forms::heads_of(c), walks = heads * 2 * options.draws,
                     total = walks * c.shape.T;
  std::atomic<std::int64_t> done = 0;
  std::mutex lock;
  const auto report = [&](std::int64_t tokens) {
    const std::int64_t before = done.fetch_add(tokens);
    if (!options.progress || before * 100 / total == (before + tokens) * 100 / total) return;
    const std::lock_guard guard(lock);
    options.progress(static_cast<double>(before + tokens) / static_cast<double>(total));
  };
  in_parallel(walks, options.threads, [&](std::int64_t i) {
    const std::int64_t head = i / (2 * options.draws);
    const int mode = static_cast<int>(i % 2), draw = static_cast<int>(i / 2 % options.draws);
    ShadowSites sites(plan,
                      {mode == 0 ? Reading::independent : Reading::dithered, draw, options.draws,
                       c.seed * 1024 + static_cast<std::uint64_t>(head)},
                      active);
    forms::walk(
        sites, c, inputs, head,
        [&](std::string_view tensor, std::int64_t first, const forms::Matrix<double>& rows) {
          sums.find(std::string(tensor))->second.add(mode, draw, head, first, rows);
          if (shadow::has_tokens(c, tensor)) report(rows.rows());
        });
    if (used) {
      const std::lock_guard guard(lock);
      *used |= sites.used();
    }
  });
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
  in_parallel(heads, 0, [&](std::int64_t head) {
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
