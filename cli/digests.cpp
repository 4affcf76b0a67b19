#include "cli/digests.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/errors.h"
#include "partitioning/run.h"
#include "property_tests/case_table.h"
#include "property_tests/families.h"
#include "reports/files.h"

namespace numgate {
namespace {

const CaseLine kLines[] = {
    {"kda.prefill", "sequential chunked@100 decode replay@16 cp3 resume@70",
     "reference production tf32", "gaussian needle near_collinear ragged",
     "T=150,HV=2 T=145,K=64,V=128,state0=random"},
    {"kda.prefill", "sequential cp8", "reference production tf32",
     "slow_decay mixed_decay log_sigmoid strong_decay outlier_channels tiny fla_cp_test "
     "alternating_sign",
     "T=67,H=2,gate=plain T=130,K=128"},
    {"kda.prefill", "sequential cp2", "production", "gaussian",
     "T=33,H=64 T=1,HV=3 T=16 T=17 T=63 T=64 T=65 T=129"},
    {"kda.prefill", "tp4", "production reference", "gaussian", "T=70,H=4,HV=8,state0=random"},
    {"kda.prefill", "varlen", "reference production", "gaussian ragged",
     "T=200,HV=2,state0=random,cuts=1+17+81 T=90,in=f32,cuts=64"},
    {"kda.prefill", "sequential cp3", "reference production", "gaussian", "T=100,in=f32"},
    {"kda.prefill", "cp3",
     "tf32x3 reference+summary.chain=diag_tf32x3 reference+summary.chain=bf16x3 "
     "reference+merge.dot=tf32rna reference+handoff=bf16 "
     "reference+h.store=fp16 reference+w.dot=bf16 reference+state=bf16 production+inverse=tf32",
     "gaussian needle", "T=100"},
    {"kda.core", "sequential cp3 decode replay@8", "reference production",
     "exact_integers zero_beta gaussian", "T=90,state0=random"},
    {"kda.summary", "sequential", "reference production tf32", "gaussian needle exact_integers",
     "T=100,HV=2 T=70,K=64,V=128"},
    {"kda.merge", "sequential", "reference production tf32", "gaussian needle tiny",
     "T=7,HV=2,state0=random T=5,K=64,V=128"},
    {"kda.l2norm", "sequential", "reference", "gaussian outlier_channels tiny near_collinear",
     "T=33,H=3 T=33,K=128,in=f32"},
    {"kda.gate", "sequential", "reference", "gaussian needle log_sigmoid saturated",
     "T=33,H=3 T=33,H=2,gate=plain"},
    {"kda.beta", "sequential", "reference", "gaussian saturated", "T=200,H=3"},
    {"kda.conv", "sequential chunked@7 cp8 varlen", "reference", "gaussian saturated",
     "T=23,state0=random"},
    {"kda.out_norm", "sequential", "reference", "gaussian saturated tiny", "T=33,H=2 T=33,K=128"},
};

}  // namespace

std::vector<Case> digest_cases() {
  constexpr std::uint64_t kSeed = 7;
  std::vector<Case> cases;
  for (const CaseLine& line : kLines)
    for (Case& c : expand(line, kSeed)) cases.push_back(std::move(c));
  return cases;
}

std::vector<Case> digest_spread() {
  std::set<std::string> seen;
  std::vector<Case> kept;
  for (const Case& c : digest_cases()) {
    const Shape& s = c.shape;
    if (s.HV > 8) continue;
    const std::string stage = c.stage + " ";
    bool new_to_us = false;
    for (const std::string& what :
         {c.schedule.text(), fmt::format("{} {}", static_cast<int>(c.schedule.kind), c.plan.text()),
          // What kernels are built or chosen for.
          fmt::format("{} {} {} {}", c.plan.text(), s.K, s.V, static_cast<int>(s.in)),
          fmt::format("gate {}", static_cast<int>(s.gate)), fmt::format("grouped {}", s.H < s.HV)})
      new_to_us |= seen.insert(stage + what).second;
    if (new_to_us) kept.push_back(c);
  }
  return kept;
}

std::string digest(const Case& c, kernels::Backend& backend) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](const void* p, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      hash = (hash ^ static_cast<const std::uint8_t*>(p)[i]) * 0x100000001b3;
  };
  const Observation seen = run_case(c, generate(c), backend);
  for (const auto& [name, values] : seen.outputs) {
    add(name.data(), name.size());
    add(values.bytes.data(), values.bytes.size());
  }
  for (const std::string& failure : seen.failures) add(failure.data(), failure.size());
  return fmt::format("{:016x}", hash);
}

Digests read_digests(const std::string& file) {
  try {
    return nlohmann::json::parse(read_file(file)).at("digests").get<Digests>();
  } catch (const nlohmann::json::exception& e) {
    throw UsageError("digests", file, std::string("is malformed: ") + e.what());
  }
}

}  // namespace numgate
