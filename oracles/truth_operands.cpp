#include "oracles/truth_operands.h"

#include <cmath>

namespace numgate {

OperandTile::OperandTile(std::int64_t K_, std::int64_t tokens)
    : K(K_),
      alpha(static_cast<std::size_t>(tokens * K)),
      khat(alpha.size()),
      qhat(alpha.size()),
      beta(static_cast<std::size_t>(tokens)),
      norms(static_cast<std::size_t>(tokens)) {}

void OperandTile::fill(const OperandSource& source, std::int64_t head, std::int64_t t,
                       std::int64_t at, int count) {
  thread_local Operands<DDPack> packed;
  source.prepare(head, t, count, packed);
  const auto scatter = [&](const std::vector<DDPack>& from, std::vector<DD>& to) {
    for (std::int64_t d = 0; d < K; ++d) {
      const DDPack& x = from[static_cast<std::size_t>(d)];
      for (int l = 0; l < count; ++l)
        to[static_cast<std::size_t>((at + l) * K + d)] = {x.hi[l], x.lo[l]};
    }
  };
  scatter(packed.alpha, alpha);
  scatter(packed.khat, khat);
  if (source.has_query()) scatter(packed.qhat, qhat);

  Pack largest{}, khat_square{}, qhat_square{};
  for (std::size_t d = 0; d < static_cast<std::size_t>(K); ++d) {
    largest = select(packed.alpha[d].hi > largest, packed.alpha[d].hi, largest);
    khat_square += packed.khat[d].hi * packed.khat[d].hi;
    if (source.has_query()) qhat_square += packed.qhat[d].hi * packed.qhat[d].hi;
  }
  for (int l = 0; l < count; ++l) {
    const auto i = static_cast<std::size_t>(at + l);
    beta[i] = {packed.beta.hi[l], packed.beta.lo[l]};
    norms[i] = {largest[l], std::sqrt(khat_square[l]), std::sqrt(qhat_square[l]), beta[i].hi, 0};
  }
}

}  // namespace numgate
