#include <set>

#include "property_tests/case_table.h"
#include "property_tests/profiles.h"

namespace numgate {
namespace {

constexpr const char* kTf32Chain =
    "the context-parallel chain and merge run in TF32, and the error grows";

struct ControlLine {
  const char *id, *rules, *why;
};

Profile make(std::string name, std::string what, const std::string& ladder,
             const std::vector<CaseLine>& lines, const std::vector<ControlLine>& controls) {
  Profile p{std::move(name), std::move(what), {}, {}, words(ladder)};
  std::set<std::string> known;  // what two lines name is one case
  for (const auto& line : lines)
    for (Case& c : expand(line, kProfileSeed))
      if (known.insert(c.id()).second) p.cases.push_back(std::move(c));
  for (const auto& control : controls)
    p.controls.push_back({parse_case(control.id), words(control.rules), control.why});
  return p;
}

// A persistent family is listed only at lengths that it lives through.
Profile quick() {
  const char* ladder = "T=512,K=128 T=1024,K=128 T=2048,K=128 T=4096,K=128 T=8192,K=128";
  return make(
      "quick",
      "every schedule, every family, one ladder of contexts, the controls; 2 minutes on 2 cores",
      ladder,
      {
          // Every schedule.
          {"kda.prefill",
           "sequential chunked@100 chunked@64 decode replay@16 cp8 cp3 varlen resume@100",
           "production", "gaussian", "T=512"},
          {"kda.prefill", "tp2", "production", "gaussian", "T=512,H=2"},
          {"kda.prefill", "decode replay@16 cp3 resume@100", "reference", "needle", "T=1024"},
          {"kda.prefill", "chunked@100", "reference production", "slow_decay", "T=1024"},
          // Every family.
          {"kda.prefill", "sequential", "production",
           "needle slow_decay mixed_decay log_sigmoid near_collinear strong_decay outlier_channels "
           "tiny fla_cp_test "
           "alternating_sign",
           "T=512"},
          {"kda.prefill", "cp8", "production",
           "slow_decay mixed_decay near_collinear strong_decay outlier_channels fla_cp_test "
           "alternating_sign",
           "T=512"},
          {"kda.prefill", "cp8", "reference", "needle slow_decay mixed_decay", "T=1024"},
          // Ragged lengths, states that start full, packed sequences.
          {"kda.prefill", "sequential", "production", "ragged", "T=22 T=65 T=527"},
          {"kda.prefill", "cp3 chunked@100 replay@16", "production", "ragged",
           "T=497,state0=random"},
          {"kda.prefill", "varlen", "production reference", "ragged",
           "T=463,state0=random,cuts=1+65+86+342"},
          // The other keys of a shape: gate, element type, grouped and wide values.
          {"kda.prefill", "sequential cp3", "production", "gaussian fla_cp_test",
           "T=256,H=1,HV=2,gate=plain"},
          {"kda.prefill", "sequential cp8", "reference", "gaussian", "T=512,in=f32"},
          {"kda.prefill", "cp3", "production", "needle", "T=512,HV=2,K=64,V=128"},
          // The ladder of contexts.
          {"kda.prefill", "sequential cp8", "production", "needle", ladder},
          {"kda.prefill", "cp8", "reference", "needle", "T=512,K=128 T=1024,K=128"},
          // Prepared operands.
          {"kda.core", "sequential chunked@100 decode replay@16 cp8 resume@100",
           "reference production", "exact_integers", "T=256,state0=random"},
          {"kda.core", "sequential cp3 decode", "reference production", "zero_beta",
           "T=256,state0=random"},
          {"kda.core", "sequential cp3", "production", "gaussian", "T=256"},
          {"kda.summary", "sequential", "production", "gaussian needle", "T=256"},
          {"kda.summary", "sequential", "reference production", "exact_integers zero_beta",
           "T=128"},
          {"kda.merge", "sequential", "production", "gaussian needle alternating_sign tiny",
           "T=16,state0=random"},
          {"kda.merge", "sequential", "reference production", "exact_integers",
           "T=16,state0=random"},
          // Elementwise stages.
          {"kda.l2norm", "sequential", "reference", "gaussian outlier_channels tiny near_collinear",
           "T=256"},
          {"kda.gate", "sequential", "reference",
           "gaussian needle log_sigmoid strong_decay saturated",
           "T=256,H=2,gate=bounded T=256,H=2,gate=plain"},
          {"kda.beta", "sequential", "reference", "gaussian saturated", "T=512"},
          {"kda.conv", "sequential chunked@100 cp3 resume@100 varlen", "reference", "gaussian",
           "T=256,state0=random"},
          {"kda.conv", "sequential", "reference",
           "outlier_channels tiny alternating_sign saturated", "T=256"},
          {"kda.out_norm", "sequential", "reference", "gaussian outlier_channels tiny saturated",
           "T=256"},
      },
      {
          // The fault that numgate was born from.
          {"kda.prefill/cp8/production:tf32/needle/T=4096,K=128/seed=42",
           "contract equivalence accuracy", "the context-parallel chain and merge run in TF32"},
          {"kda.prefill/cp8/production:tf32/needle/T=8192,K=128/seed=42",
           "contract growth equivalence accuracy",
           "the context-parallel chain and merge run in TF32, and the error grows"},
          // The same, owned up to: the contract holds, but the schedule costs more than rounding.
          {"kda.prefill/cp8/tf32/needle/T=4096,K=128/seed=42", "equivalence accuracy",
           "TF32 declared as it runs: the cut costs more than rounding"},
          // What FLA's fix does, where a decay in fp32 is declared.
          {"kda.prefill/cp8/reference+summary.chain=diag_tf32x3:reference+summary.chain=tf32x3/"
           "needle/T=1024/seed=42",
           "contract equivalence", "the decay passes through the chain's tf32x3"},
          // Single sites, where nothing else rounds coarsely.
          {"kda.prefill/cp8/reference:reference+merge.dot=tf32/needle/T=1024/seed=42", "contract",
           "one merge product in TF32"},
          {"kda.prefill/cp8/reference:reference+handoff=bf16/needle/T=1024/seed=42",
           "contract equivalence", "summaries exchanged in bf16"},
          {"kda.prefill/sequential/reference:reference+state=bf16/needle/T=1024/seed=42",
           "contract", "the carried state stored in bf16"},
          {"kda.prefill/sequential/reference:reference+gamma=bf16/needle/T=1024/seed=42",
           "contract", "the decay rounded to bf16"},
      });
}

Profile merge() {
  const char* ladder = "T=1024,K=128 T=4096,K=128 T=16384,K=128 T=65536,K=128";
  return make(
      "merge",
      "contexts to 65,536, two heads, every family under context parallelism; 5 minutes on 2 cores",
      ladder,
      {
          {"kda.prefill",
           "sequential chunked@100 chunked@64 decode replay@16 cp8 cp3 tp2 varlen resume@100",
           "production", "gaussian needle", "T=1024,H=2"},
          {"kda.prefill", "sequential cp8", "production reference",
           "slow_decay mixed_decay log_sigmoid near_collinear strong_decay outlier_channels tiny "
           "fla_cp_test "
           "alternating_sign",
           "T=1024,H=2"},
          {"kda.prefill", "decode replay@16 cp3 chunked@100", "reference", "needle slow_decay",
           "T=1024"},
          {"kda.prefill", "cp8", "production", "slow_decay mixed_decay",
           "T=1024 T=2048 T=4096 T=8192"},
          {"kda.prefill", "sequential cp3 cp8 chunked@100 replay@16", "production reference",
           "ragged", "T=22 T=65 T=497,state0=random T=1039,state0=random"},
          {"kda.prefill", "resume@100", "production reference", "ragged", "T=497,state0=random"},
          {"kda.prefill", "varlen", "production reference", "ragged gaussian",
           "T=463,state0=random,cuts=1+65+86+342 T=1024,cuts=15+16+17+81+640"},
          {"kda.prefill", "sequential cp3 replay@16", "production reference",
           "gaussian fla_cp_test", "T=512,H=2,HV=4,gate=plain T=512,in=f32 T=512,K=64,V=128"},
          {"kda.prefill", "sequential cp8", "production", "needle", ladder},
          {"kda.prefill", "cp8", "reference", "needle", "T=1024,K=128 T=4096,K=128"},
          {"kda.prefill", "cp32", "production", "needle", "T=4096,K=128"},
          {"kda.core", "sequential chunked@100 decode replay@16 cp8 resume@100 tp2",
           "reference production", "exact_integers zero_beta", "T=512,H=2,state0=random"},
          {"kda.core", "sequential cp3", "production reference", "gaussian needle ragged", "T=512"},
          {"kda.summary", "sequential", "production reference",
           "gaussian needle exact_integers zero_beta", "T=512 T=512,K=128"},
          {"kda.merge", "sequential", "production reference",
           "gaussian needle slow_decay alternating_sign tiny exact_integers",
           "T=8,state0=random T=64,state0=random T=64,K=128,state0=random"},
          {"kda.l2norm", "sequential", "reference",
           "gaussian outlier_channels tiny near_collinear fla_cp_test ragged",
           "T=1024,H=2 T=1024,K=128,in=f32"},
          {"kda.gate", "sequential", "reference",
           "gaussian needle slow_decay mixed_decay log_sigmoid strong_decay fla_cp_test saturated",
           "T=1024,H=2,gate=bounded T=1024,H=2,gate=plain"},
          {"kda.beta", "sequential", "reference", "gaussian near_collinear saturated",
           "T=4096,H=2"},
          {"kda.conv", "sequential chunked@100 cp3 cp8 resume@100 varlen", "reference",
           "gaussian outlier_channels saturated", "T=1024,state0=random"},
          {"kda.conv", "sequential", "reference", "tiny alternating_sign ragged", "T=1024"},
          {"kda.out_norm", "sequential", "reference",
           "gaussian outlier_channels tiny saturated ragged", "T=1024,H=2 T=1024,K=128"},
      },
      {
          {"kda.prefill/cp8/production:tf32/needle/T=16384,K=128/seed=42",
           "contract growth equivalence accuracy",
           "the context-parallel chain and merge run in TF32, and the error grows"},
          {"kda.prefill/cp8/production:tf32/needle/T=65536,K=128/seed=42",
           "contract growth equivalence accuracy",
           "the context-parallel chain and merge run in TF32, and the error grows"},
          {"kda.prefill/cp8/tf32/needle/T=4096,K=128/seed=42", "equivalence accuracy",
           "TF32 declared as it runs: the cut costs more than rounding"},
          {"kda.prefill/cp8/reference+summary.chain=diag_tf32x3:reference+summary.chain=tf32x3/"
           "needle/T=4096,K=128/seed=42",
           "contract growth equivalence accuracy",
           "the decay passes through the chain's tf32x3, and the error grows"},
          {"kda.prefill/cp8/reference:reference+merge.dot=tf32/needle/T=4096,K=128/seed=42",
           "contract equivalence", "one merge product in TF32"},
          {"kda.prefill/cp8/reference:reference+summary.chain=tf32/needle/T=4096,K=128/seed=42",
           "contract equivalence", "the chain of a segment's map in TF32"},
          {"kda.prefill/cp8/reference:reference+handoff=bf16/needle/T=1024/seed=42",
           "contract equivalence", "summaries exchanged in bf16"},
          {"kda.prefill/sequential/reference:reference+state=bf16/needle/T=4096/seed=42",
           "contract", "the carried state stored in bf16"},
          {"kda.prefill/sequential/reference:reference+gamma=bf16/needle/T=4096/seed=42",
           "contract", "the decay rounded to bf16"},
      });
}

// One H200, in two sittings of ten minutes: `numgate run --profile release --dry-run --oracle cuda`
// says what each cell should cost. Heads are independent, so one stands for many; a case of 64
// shows that the schedules hold for as many.
Profile release() {
  const char* ladder = "T=4096,K=128 T=16384,K=128 T=65536,K=128 T=262144,K=128 T=1048576,K=128";
  const char* families =
      "gaussian needle slow_decay mixed_decay log_sigmoid near_collinear strong_decay "
      "outlier_channels tiny fla_cp_test alternating_sign ragged";
  return make(
      "release", "contexts to 1,048,576, every schedule with every family; meant for the GPU",
      ladder,
      {
          // The ladders of contexts.
          {"kda.prefill", "sequential cp8", "production reference", "needle", ladder},
          {"kda.prefill", "cp8", "tf32x3", "needle", ladder},
          {"kda.prefill", "sequential", "tf32 tf32x3", "needle",
           "T=4096,K=128 T=16384,K=128 T=65536,K=128"},
          // A rank's slice may not be longer than what the family remembers.
          {"kda.prefill", "cp8", "production", "slow_decay",
           "T=4096,K=128 T=16384,K=128 T=65536,K=128"},
          {"kda.prefill", "cp32", "production", "slow_decay", "T=65536,K=128 T=262144,K=128"},
          {"kda.prefill", "cp128", "production", "slow_decay", "T=1048576,K=128"},
          {"kda.prefill", "cp2 cp32", "production", "needle",
           "T=4096,K=128 T=16384,K=128 T=65536,K=128"},
          // Every schedule, kind of plan and family.
          {"kda.prefill", "sequential cp8", "production reference", families, "T=16384,K=128"},
          {"kda.prefill", "chunked@1000 cp2 cp32 replay@16 resume@1000", "production reference",
           families, "T=4096,K=128"},
          {"kda.prefill", "tp8", "production reference", families, "T=4096,H=8,K=128"},
          {"kda.prefill", "cp2 cp8 cp32", "tf32x3", families, "T=4096,K=128"},
          {"kda.prefill", "sequential chunked@1000 cp2 cp8 cp32 replay@16 resume@1000",
           "reference+inverse=tf32",
           "gaussian needle slow_decay mixed_decay log_sigmoid strong_decay outlier_channels tiny "
           "fla_cp_test alternating_sign ragged",
           "T=4096,K=128"},
          // Near-collinear keys amplify a narrow inverse beyond the budget: another site for them.
          {"kda.prefill", "sequential chunked@1000 cp2 cp8 cp32 replay@16 resume@1000",
           "reference+h.store=bf16", "near_collinear", "T=4096,K=128"},
          {"kda.prefill", "sequential cp8",
           "reference+w.dot=bf16 reference+h.store=fp16 reference+kv.dot=bf16 "
           "production+inverse=tf32",
           "needle gaussian", "T=16384,K=128"},
          {"kda.prefill", "decode varlen", "production reference", "gaussian needle",
           "T=4096,K=128"},
          // Many heads, grouped values, plain gates, fp32 inputs.
          {"kda.prefill", "sequential cp8", "production", "needle", "T=16384,H=64,K=128"},
          {"kda.prefill", "chunked@1000", "production", "gaussian",
           "T=16384,H=32,HV=64,K=128,gate=plain"},
          {"kda.prefill", "cp8", "production reference", "gaussian", "T=16384,K=128,in=f32"},
          // Prepared operands and the stages of a schedule.
          {"kda.core", "sequential cp8 replay@16", "reference production",
           "exact_integers zero_beta", "T=16384,H=2,K=128,state0=random"},
          // A gaussian map is forgotten long before 16,384 tokens.
          {"kda.summary", "sequential", "production reference", "needle", "T=16384,H=2,K=128"},
          {"kda.summary", "sequential", "production reference", "gaussian", "T=256,H=2,K=128"},
          {"kda.merge", "sequential", "production reference", "gaussian needle exact_integers",
           "T=64,H=2,K=128,state0=random"},
          // Elementwise stages.
          {"kda.l2norm", "sequential", "reference", "gaussian outlier_channels tiny near_collinear",
           "T=16384,H=8,K=128"},
          {"kda.gate", "sequential", "reference", "gaussian needle log_sigmoid saturated",
           "T=16384,H=8,K=128,gate=bounded T=16384,H=8,K=128,gate=plain"},
          {"kda.beta", "sequential", "reference", "gaussian saturated", "T=65536,H=8"},
          {"kda.conv", "sequential cp8 chunked@1000", "reference", "gaussian outlier_channels",
           "T=16384,H=2,K=128,state0=random"},
          {"kda.out_norm", "sequential", "reference", "gaussian outlier_channels tiny saturated",
           "T=16384,H=8,K=128"},
      },
      {
          {"kda.prefill/cp8/production:tf32/needle/T=4096,K=128/seed=42",
           "contract equivalence accuracy", kTf32Chain},
          {"kda.prefill/cp8/production:tf32/needle/T=16384,K=128/seed=42",
           "contract growth equivalence accuracy", kTf32Chain},
          {"kda.prefill/cp8/production:tf32/needle/T=65536,K=128/seed=42",
           "contract growth equivalence accuracy", kTf32Chain},
          {"kda.prefill/cp8/production:tf32/needle/T=262144,K=128/seed=42",
           "contract growth equivalence accuracy", kTf32Chain},
          {"kda.prefill/cp8/production:tf32/needle/T=1048576,K=128/seed=42",
           "contract growth equivalence accuracy", kTf32Chain},
          // The second of two ranks starts from B alone: only the fold meets the map.
          {"kda.prefill/cp2/production:tf32/needle/T=65536,K=128/seed=42", "contract accuracy",
           kTf32Chain},
          {"kda.prefill/cp32/production:tf32/needle/T=65536,K=128/seed=42",
           "contract equivalence accuracy", kTf32Chain},
          {"kda.prefill/cp8/tf32/needle/T=4096,K=128/seed=42", "equivalence accuracy",
           "TF32 declared as it runs: the cut costs more than rounding"},
          {"kda.prefill/cp8/reference+summary.chain=diag_tf32x3:reference+summary.chain=tf32x3/"
           "needle/T=4096,K=128/seed=42",
           "contract growth equivalence accuracy",
           "the decay passes through the chain's tf32x3, and the error grows"},
          {"kda.prefill/cp8/tf32/needle/T=65536,K=128/seed=42", "equivalence accuracy",
           "TF32 declared as it runs: the cut costs more than rounding"},
          {"kda.prefill/cp8/reference:reference+merge.dot=tf32/needle/T=4096,K=128/seed=42",
           "contract equivalence", "one merge product in TF32"},
          {"kda.prefill/cp8/reference:reference+summary.chain=tf32/needle/T=4096,K=128/seed=42",
           "contract equivalence", "the chain of a segment's map in TF32"},
          {"kda.prefill/cp8/reference:reference+summary.chain=tf32/needle/T=16384,K=128/seed=42",
           "contract equivalence", "the chain of a segment's map in TF32"},
          {"kda.prefill/cp8/reference:reference+handoff=bf16/needle/T=16384,K=128/seed=42",
           "contract equivalence", "summaries exchanged in bf16"},
          {"kda.prefill/sequential/reference:reference+state=bf16/needle/T=16384,K=128/seed=42",
           "contract", "the carried state stored in bf16"},
          {"kda.prefill/sequential/reference:reference+gamma=bf16/needle/T=16384,K=128/seed=42",
           "contract", "the decay rounded to bf16"},
      });
}

// A layer of 64 heads, eight to a cell, as many as fit into the host's memory together, each a
// chain over all tokens: of the families that must remember, needle alone does so long. The short
// cells run three times in place of the long ones.
Profile layer() {
  return make(
      "layer", "a layer of 64 heads over 1,048,576 tokens, heads of eight families; for the GPU",
      "T=16384,H=8,K=128 T=1048576,H=8,K=128",
      {
          {"kda.prefill", "sequential", "production",
           "needle gaussian log_sigmoid near_collinear tiny fla_cp_test alternating_sign ragged",
           "T=16384,H=8,K=128 T=1048576,H=8,K=128"},
      },
      {
          {"kda.prefill/cp8/production:tf32/needle/T=65536,K=128/seed=42",
           "contract growth equivalence accuracy", kTf32Chain},
      });
}

// What the thresholds rest on; run with --seeds 64.
Profile study() {
  return make("study", "every family in both named precisions, for distributions over seeds",
              "T=512 T=2048",
              {{"kda.prefill", "sequential cp8", "reference production",
                "gaussian needle slow_decay mixed_decay log_sigmoid near_collinear strong_decay "
                "outlier_channels tiny "
                "fla_cp_test alternating_sign ragged",
                "T=512 T=2048"}},
              {});
}

}  // namespace

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> all{quick(), merge(), release(), layer(), study()};
  return all;
}

}  // namespace numgate
