#include "reports/tests/sample_report.h"

#include <cmath>

#include "reports/tests/evidence.h"

namespace numgate {
namespace {

// Scores that wander by a few percent, as measured ones do.
double wander(const WindowKey& key, std::size_t salt) {
  return 0.9 + 0.12 * std::sin(static_cast<double>(key.end) * 0.013 + static_cast<double>(salt));
}

CellEvidence plausible(const std::string& id, std::size_t salt) {
  CellEvidence evidence = healthy(id);
  const std::int64_t heads = evidence.c.shape.HV;
  evidence.tensors[0] = sequence_profile(
      evidence.c, heads, [salt](const WindowKey& key) { return wander(key, salt); });
  evidence.tensors[1] = state_profile(evidence.c, heads, 0.97);
  for (TensorProfile& tensor : evidence.tensors) {
    for (double& truth : tensor.truth_squares) truth *= 2e-3;  // shadow at 2e-3 of truth
    if (evidence.c.schedule.kind != ScheduleKind::sequential) add_control(tensor, 1, 0.9);
  }
  evidence.seconds = 0.4 + 1e-4 * static_cast<double>(evidence.c.shape.T);
  return evidence;
}

// The founding fault: from the second rank on the error is a bias that doubles with every doubling.
CellEvidence founding_fault(const std::string& id, std::size_t salt) {
  CellEvidence evidence = plausible(id, salt);
  const auto T = static_cast<double>(evidence.c.shape.T);
  const auto bias = [](double t) { return t / 2200; };
  evidence.tensors[0] = sequence_profile(evidence.c, 1, [&](const WindowKey& key) {
    return std::hypot(wander(key, salt), key.rank == 0 ? 0 : bias(static_cast<double>(key.begin)));
  });
  evidence.tensors[1] = state_profile(evidence.c, 1, std::hypot(0.97, bias(T)));
  for (TensorProfile& tensor : evidence.tensors) {
    for (double& truth : tensor.truth_squares) truth *= 2e-3;
    add_control(tensor, 1, 0.5);
  }
  return evidence;
}

}  // namespace

Report sample_report(bool broken) {
  Report report;
  report.tool_version = "0.1.0";
  report.command = "numgate run --profile quick --out out";
  report.profile = "quick";
  report.backend = "cpu";
  report.git_commit = "0123456789abcdef0123456789abcdef01234567";
  report.hardware = "2 x AVX-512 cores";
  report.compiler = "gcc 12.2.0";
  report.started = "2026-01-31T12:00:00Z";
  report.seconds = 96;
  report.policy = default_policy();

  std::size_t salt = 0;
  const auto run = [&](const std::string& id) {
    report.cells.push_back(judge(plausible(id, ++salt), report.policy));
    return &report.cells.back();
  };
  const std::vector<std::string> families{
      "gaussian",       "needle",       "slow_decay",       "log_sigmoid",
      "near_collinear", "strong_decay", "outlier_channels", "tiny"};
  for (const std::string schedule :
       {"sequential", "chunked@100", "cp3", "tp2", "varlen", "resume@100", "replay@16", "decode"})
    for (std::size_t i = 0; i < families.size(); ++i)
      if (schedule == "sequential" || (i + schedule.size()) % 2 == 0)
        run("kda.prefill/" + schedule + "/production/" + families[i] +
            "/T=512,H=2,K=64,V=64/seed=1");
  for (const std::string family : {"zero_beta", "exact_integers"})
    run("kda.core/sequential/reference/" + family + "/T=192,H=1,K=64,V=64/seed=1");
  for (const std::string T : {"512", "1024", "2048", "4096", "8192"})
    run("kda.prefill/cp8/production/needle/T=" + T + ",H=1,K=128,V=128/seed=1");

  for (const std::string T : {"2048", "4096", "8192"})
    report.cells.push_back(judge(
        founding_fault("kda.prefill/cp8/production:tf32/needle/T=" + T + ",H=1,K=128,V=128/seed=1",
                       ++salt),
        report.policy));
  report.controls.push_back(
      {"kda.prefill/cp8/production:tf32/needle/T=8192*",
       {"contract", "growth", "equivalence", "accuracy"},
       "the founding fault: chain and merge of the context-parallel schedule run in TF32"});
  report.controls.push_back(
      {"kda.prefill/cp8/production:tf32/needle/T=[24]*", {"contract"}, "unused"});
  report.controls.back() = {"kda.prefill/cp8/production:tf32/needle/T=4096*",
                            {"equivalence"},
                            "the same at half the context"};
  report.controls.push_back({"kda.prefill/cp8/production:tf32/needle/T=2048*",
                             {"growth"},
                             "the same at a quarter of the context, where only growth shows it"});

  if (broken) {
    const std::string T4096 = ",H=1,K=128,V=128/seed=2";
    report.cells.push_back(judge(
        founding_fault("kda.prefill/cp8/tf32/slow_decay/T=4096" + T4096, ++salt), report.policy));
    CellEvidence dead = plausible("kda.prefill/cp8/production/log_sigmoid/T=512" + T4096, ++salt);
    dead.live = false;
    dead.not_live_reason = "the state forgets within 40 tokens: a cut cannot show";
    report.cells.push_back(judge(dead, report.policy));
    report.cells.push_back(unjudged(parse_case("kda.prefill/cp8/production/tiny/T=65536" + T4096),
                                    "timeout", "stopped after 600 s", 600));
    CellEvidence poisoned = plausible("kda.prefill/cp8/production/gaussian/T=1000" + T4096, ++salt);
    poisoned.health.failures = {"rank 7 never wrote tokens 875 to 999 of o"};
    report.cells.push_back(judge(poisoned, report.policy));
    report.policy.waivers.push_back({"*/chunked@100/*/needle/*", "contract", "A. Owner",
                                     "known until the new handoff lands", "2026-12-31"});
  }
  conclude(report);
  return report;
}

}  // namespace numgate
