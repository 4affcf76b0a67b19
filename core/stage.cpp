#include "core/stage.h"

#include "core/errors.h"

namespace numgate {

const std::vector<StageInfo>& stages() {
  static const std::vector<std::string_view> whole{"sequential"};
  static const std::vector<std::string_view> streams{"sequential", "chunked", "cp",
                                                     "tp",         "varlen",  "resume"};
  static const std::vector<std::string_view> recurrence{
      "sequential", "chunked", "decode", "replay", "cp", "tp", "varlen", "resume"};
  static const std::vector<StageInfo> all{
      {"kda.l2norm", "q/k L2 norm", {{"x", "T H K", "in"}}, {{"y", "T H K", "f32"}}, whole},
      {"kda.gate",
       "log decay, bounded or plain",
       {{"g_raw", "T HV K", "in"}, {"A_log", "HV", "f32"}, {"dt_bias", "HV K", "f32"}},
       {{"g", "T HV K", "f32"}},
       whole},
      {"kda.beta",
       "write strength",
       {{"beta_raw", "T HV", "in"}},
       {{"beta", "T HV", "f32"}},
       whole},
      {"kda.conv",
       "causal short convolution and SiLU, with state",
       {{"x", "T C", "in"}, {"w", "C 4", "f32"}, {"conv_state0", "N C 3", "in"}},
       {{"y", "T C", "f32"}, {"conv_state", "N C 3", "in"}},
       streams},
      {"kda.prefill",
       "KDA from raw inputs: norm, gate, beta and recurrence",
       {{"q", "T H K", "in"},
        {"k", "T H K", "in"},
        {"v", "T HV V", "in"},
        {"g_raw", "T HV K", "in"},
        {"A_log", "HV", "f32"},
        {"dt_bias", "HV K", "f32"},
        {"beta_raw", "T HV", "in"},
        {"state0", "N HV K V", "f32"}},
       {{"o", "T HV V", "f32"}, {"state", "N HV K V", "f32"}},
       recurrence},
      {"kda.core",
       "KDA recurrence on prepared operands",
       {{"qhat", "T H K", "f32"},
        {"khat", "T H K", "f32"},
        {"v", "T HV V", "in"},
        {"g", "T HV K", "f32"},
        {"beta", "T HV", "f32"},
        {"state0", "N HV K V", "f32"}},
       {{"o", "T HV V", "f32"}, {"state", "N HV K V", "f32"}},
       recurrence},
      {"kda.summary",
       "a segment's affine map (M, B) on prepared operands",
       {{"khat", "T H K", "f32"},
        {"v", "T HV V", "in"},
        {"g", "T HV K", "f32"},
        {"beta", "T HV", "f32"}},
       {{"M", "HV K K", "f32"}, {"B", "HV K V", "f32"}},
       whole},
      {"kda.merge",
       "fold of T summaries onto a state",
       {{"M", "T HV K K", "f32"}, {"B", "T HV K V", "f32"}, {"state0", "N HV K V", "f32"}},
       {{"state", "N HV K V", "f32"}},
       whole},
      {"kda.out_norm",
       "gated RMSNorm of o",
       {{"o", "T HV V", "f32"}, {"z", "T HV V", "in"}, {"w", "V", "f32"}},
       {{"y", "T HV V", "f32"}},
       whole},
  };
  return all;
}

const StageInfo& stage(std::string_view name) {
  for (const auto& s : stages())
    if (s.name == name) return s;
  throw UsageError("stage", std::string(name), "unknown; `numgate list stages` shows them");
}

}  // namespace numgate
