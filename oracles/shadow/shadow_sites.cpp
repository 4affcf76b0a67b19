#include "oracles/shadow/shadow_sites.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "oracles/shadow/dot.h"
#include "oracles/shadow/rounding.h"

namespace numgate::shadow {

static std::uint64_t stream(const Draw& d) {
  const auto draw = static_cast<std::uint64_t>(d.index) * 2 + (d.reading == Reading::dithered);
  return mix(mix(d.seed + 1) + draw);
}

DrawTable draw_table(const Plan& plan, const Draw& draw, std::bitset<kSiteCount> active) {
  DrawTable t;
  std::copy(plan.formats.begin(), plan.formats.end(), t.plan);
  std::copy(kFormats.begin(), kFormats.end(), t.formats);
  t.active = active.to_ullong();
  t.reading = draw.emulate ? Reading::dithered : draw.reading;
  t.emulate = draw.emulate;
  t.stream = stream(draw);
  if (draw.emulate) return t;
  // Draw i of a site and role gets the stratum to which a shuffle, the same for all draws, sends
  // it.
  std::mt19937_64 shuffle(draw.seed);
  std::vector<int> strata(static_cast<std::size_t>(draw.count));
  for (auto& site : t.offsets)
    for (double& offset : site) {
      std::iota(strata.begin(), strata.end(), 0);
      for (std::size_t i = strata.size(); i > 1; --i)
        std::swap(strata[i - 1], strata[shuffle() % i]);
      offset = (strata[static_cast<std::size_t>(draw.index)] + 0.5) / draw.count - 0.5;
    }
  return t;
}

static std::size_t size(const forms::Matrix<double>& m) {
  return static_cast<std::size_t>(m.size());
}
static ProductShape shape(const forms::Matrix<double>& a, const forms::Matrix<double>& b) {
  return {static_cast<std::size_t>(a.rows()), static_cast<std::size_t>(b.cols()),
          static_cast<std::size_t>(a.cols())};
}

void HostArithmetic::round_to(const FormatInfo& f, Reading reading, M& m, double offset,
                              double amplitude) {
  shadow::round_to(f, reading, m.data(), size(m), offset, amplitude, random_);
}
void HostArithmetic::product(Reading reading, M& m, const M& b, double offset) {
  shadow::multiply(reading, m.data(), b.data(), size(m), offset, random_);
}
void HostArithmetic::exp2(M& m) { shadow::exp2(m.data(), size(m)); }
void HostArithmetic::exp(M& m) { m = m.array().exp(); }
void HostArithmetic::sigmoid(M& m) { m = (1 + (-m.array()).exp()).inverse().eval(); }
void HostArithmetic::softplus(M& m) {
  m = (m.array().max(0.0) + (-m.array().abs()).exp().log1p()).eval();
}
void HostArithmetic::rsqrt(M& m) { m = m.array().sqrt().inverse().eval(); }
void HostArithmetic::multiply(M& m, const M& b) { m = m.cwiseProduct(b).eval(); }
void HostArithmetic::add_product(const M& a, const M& b, M& c) { c.noalias() += a * b; }
void HostArithmetic::fma_chain(Reading reading, const M& a, const M& b, M& c, double offset) {
  shadow::fma_chain(reading, shape(a, b), a.data(), b.data(), c.data(), offset, random_);
}
void HostArithmetic::tensor_core(const M* const (*pieces)[2], std::size_t count,
                                 const FormatInfo& f, M& c) {
  std::vector<Pieces> data;
  for (std::size_t p = 0; p < count; ++p)
    data.push_back({pieces[p][0]->data(), pieces[p][1]->data()});
  shadow::tensor_core(shape(*pieces[0][0], *pieces[0][1]), data, f.products, f.fraction_bits,
                      c.data());
}

template class RoundingSites<HostArithmetic>;

}  // namespace numgate::shadow
