#include "kernels/tests/tuned_kernels.h"

#include <random>

#include "kernels/kda/launch.h"

namespace numgate::kernels::NUMGATE_BACKEND {

std::map<std::string, TwoOutputs> run_both(std::int64_t T, int H, int HV, int K, int V,
                                           std::uint64_t seed, std::int64_t nan_token) {
  std::mt19937_64 random(seed);
  const auto bf16 = [&](std::int64_t n, double mean, double spread) {
    std::vector<std::uint16_t> x(static_cast<std::size_t>(n));
    std::normal_distribution<double> normal(mean, spread);
    for (auto& v : x) v = bf16_from_float(static_cast<float>(normal(random)));
    return x;
  };
  const auto q = bf16(T * H * K, 0.1, 1), k = bf16(T * H * K, 0.2, 1), v = bf16(T * HV * V, 0, 1),
             beta = bf16(T * HV, 0, 2);
  auto gate = bf16(T * HV * K, -2, 4);
  if (nan_token >= 0) gate[static_cast<std::size_t>(nan_token * HV * K + 3)] = 0x7fc0;
  std::vector<float> A_log(static_cast<std::size_t>(HV), 0.3f),
      dt_bias(static_cast<std::size_t>(HV * K), -0.5f),
      state0(static_cast<std::size_t>(HV * K * V));
  std::normal_distribution<float> normal;
  for (float& s : state0) s = normal(random);

  const Plan plan = parse_plan("production");
  PrepareArgs prepare;
  prepare.dims = {T, H, HV, K, V, Dtype::bf16, true};
  prepare.in = {false,       q.data(),    k.data(),     v.data(),
                gate.data(), beta.data(), A_log.data(), dt_bias.data()};
  std::map<std::string, TwoOutputs> out;
  for (const bool tuned : {false, true}) {
    const auto take = [&](const char* name, std::int64_t bytes) {
      auto& to = tuned ? out[name].tuned : out[name].any;
      to.assign(static_cast<std::size_t>(bytes), 0);
      return static_cast<void*>(to.data());
    };
    const std::int64_t rows = prepare.dims.chunks() * HV * kChunk;
    prepare.out = {take("u", rows * V * 2),
                   take("w", rows * K * 2),
                   take("kg", rows * K * 2),
                   take("qg", rows * K * 2),
                   take("aqk", rows * kChunk * 2),
                   static_cast<float*>(take("gamma", prepare.dims.chunks() * HV * K * 4))};
    StatePassArgs pass{prepare.dims,
                       {},
                       prepare.out,
                       state0.data(),
                       static_cast<float*>(take("state", std::int64_t{HV} * K * V * 4)),
                       static_cast<float*>(take("o", T * HV * V * 4)),
                       take("o_cast", T * HV * V * 2),
                       true};
    (tuned ? launch_prepare_bf16 : launch_prepare_any)(prepare, plan, {});
    (tuned ? launch_state_pass_bf16 : launch_state_pass_any)(pass, plan, {});
    pass.o = nullptr, pass.o_cast = nullptr, pass.state0 = nullptr;
    pass.state = static_cast<float*>(take("B", std::int64_t{HV} * K * V * 4));
    (tuned ? launch_state_pass_bf16 : launch_state_pass_any)(pass, plan, {});
  }
  return out;
}

}  // namespace numgate::kernels::NUMGATE_BACKEND
