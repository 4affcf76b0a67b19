#include "oracles/shadow/shadow_sites.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "oracles/shadow/dot.h"
#include "oracles/shadow/rounding.h"

namespace numgate::shadow {

// Errors of the kernels' elementary functions, in roundings: exp and exp2 take at most 1.01
// ulp and mostly half, the others up to 1.7 ulp.
static constexpr double kExponential = 1.2, kElementary = 2;

static std::uint64_t stream(const Draw& d) {
  const auto draw = static_cast<std::uint64_t>(d.index) * 2 + (d.reading == Reading::dithered);
  return mix(mix(d.seed + 1) + draw);
}

ShadowSites::ShadowSites(const Plan& plan, const Draw& draw, std::bitset<kSiteCount> active)
    : plan_(plan),
      reading_(draw.emulate ? Reading::dithered : draw.reading),
      emulate_(draw.emulate),
      active_(active),
      random_(stream(draw)) {
  if (draw.emulate) return;
  // Draw i of a site and role gets the stratum to which a shuffle, the same for all draws, sends
  // it.
  std::mt19937_64 shuffle(draw.seed);
  std::vector<int> strata(static_cast<std::size_t>(draw.count));
  for (auto& site : offsets_)
    for (double& offset : site) {
      std::iota(strata.begin(), strata.end(), 0);
      for (std::size_t i = strata.size(); i > 1; --i)
        std::swap(strata[i - 1], strata[shuffle() % i]);
      offset = (strata[static_cast<std::size_t>(draw.index)] + 0.5) / draw.count - 0.5;
    }
}

bool ShadowSites::rounds(Site site) {
  const auto i = static_cast<std::size_t>(site);
  if (active_[i]) used_.set(i);
  return active_[i];
}

void ShadowSites::round_as(Format f, Site site, Role role, M& m, double amplitude) {
  round_to(f, reading_, m.data(), static_cast<std::size_t>(m.size()), offset(site, role), amplitude,
           random_);
}

void ShadowSites::round(Site site, M& m) {
  if (rounds(site)) round_as(Format::ieee, site, product, m);
}

void ShadowSites::multiply(Site site, M& m, const M& b) {
  if (rounds(site))
    shadow::multiply(reading_, m.data(), b.data(), static_cast<std::size_t>(m.size()),
                     offset(site, product), random_);
  else
    m = m.cwiseProduct(b).eval();
}

void ShadowSites::elementary_error(Site site, M& m, double amplitude) {
  if (rounds(site)) round_as(Format::ieee, site, elementary, m, emulate_ ? 1 : amplitude);
}

// exp2(0) = exp(0) = 1 lies on the grid, so it stays exact.
void ShadowSites::exp2(Site site, M& m) {
  shadow::exp2(m.data(), static_cast<std::size_t>(m.size()));
  elementary_error(site, m, kExponential);
}

void ShadowSites::exp(Site site, M& m) {
  m = m.array().exp();
  elementary_error(site, m, kExponential);
}

void ShadowSites::sigmoid(Site site, M& m) {
  m = (1 + (-m.array()).exp()).inverse().eval();
  elementary_error(site, m, kElementary);
}

void ShadowSites::softplus(Site site, M& m) {
  m = (m.array().max(0.0) + (-m.array().abs()).exp().log1p()).eval();
  elementary_error(site, m, kElementary);
}

void ShadowSites::rsqrt(Site site, M& m) {
  m = m.array().sqrt().inverse().eval();
  elementary_error(site, m, kElementary);
}

double ShadowSites::constant(Site site, double x) {
  if (static_cast<double>(static_cast<float>(x)) == x) return x;
  M m = M::Constant(1, 1, x);
  round(site, m);
  return m(0, 0);
}

void ShadowSites::store(Site site, Operand& x) {
  const Format f = plan_[site];
  if (holds(f, x.stored)) return;
  x.stored = f;
  if (rounds(site)) round_as(f, site, stored, x.values);
}

void ShadowSites::state(Operand& s, M m) {
  s.values = std::move(m);
  s.stored = plan_[Site::state];
  if (rounds(Site::state)) round_as(s.stored, Site::state, stored, s.values);
}

ShadowSites::M ShadowSites::operand(Site site, Format f, Role role, const Operand& x) {
  M m = x.values;
  if (!holds(f, x.stored)) round_as(f, site, role, m);
  return m;
}

void ShadowSites::fma_dot(Site site, const M& a, const M& b, M& c) {
  if (!rounds(site)) {
    c.noalias() += a * b;
    return;
  }
  const ProductShape shape{static_cast<std::size_t>(a.rows()), static_cast<std::size_t>(b.cols()),
                           static_cast<std::size_t>(a.cols())};
  fma_chain(reading_, shape, a.data(), b.data(), c.data(), offset(site, sum), random_);
}

void ShadowSites::vector_dot(Site site, const Operand& a, const Operand& b, M& c) {
  const Format f = plan_[site];
  if (!rounds(site) || !a.values.allFinite() || !b.values.allFinite())
    c.noalias() += a.values * b.values;
  else if (holds(f, a.stored) && holds(f, b.stored))
    fma_dot(site, a.values, b.values, c);
  else
    fma_dot(site, operand(site, f, left, a), operand(site, f, right, b), c);
}

void ShadowSites::dot(Site site, const Operand& a, const Operand& b, M& c) {
  const Format f = plan_[site];
  if (f == Format::ieee) return vector_dot(site, a, b, c);
  if (!rounds(site) || !a.values.allFinite() || !b.values.allFinite()) {
    c.noalias() += a.values * b.values;
    return;
  }
  const ProductShape shape{static_cast<std::size_t>(a.values.rows()),
                           static_cast<std::size_t>(b.values.cols()),
                           static_cast<std::size_t>(a.values.cols())};
  if (info(f).pieces == 1) {
    const M x = operand(site, f, left, a), y = operand(site, f, right, b);
    tensor_core(shape, {{x.data(), y.data()}}, info(f).products, info(f).fraction_bits, c.data());
    return;
  }
  // hi + lo: hi as the hardware rounds it, in every draw, because lo makes up for it; what is lost
  // is lo's rest.
  const Format piece = f == Format::bf16x3 ? Format::bf16 : Format::tf32;
  const auto split = [&](const Operand& x, Role role) {
    std::pair<M, M> hi_lo{x.values, M::Zero(x.values.rows(), x.values.cols())};
    if (holds(piece, x.stored)) return hi_lo;
    auto& [hi, lo] = hi_lo;
    round_to(piece, Reading::dithered, hi.data(), static_cast<std::size_t>(hi.size()), 0, 1,
             random_);
    lo = x.values - hi;
    round_as(piece, site, role, lo);
    return hi_lo;
  };
  const auto [a_hi, a_lo] = split(a, left);
  const auto [b_hi, b_lo] = split(b, right);
  tensor_core(shape,
              {{a_lo.data(), b_hi.data()}, {a_hi.data(), b_lo.data()}, {a_hi.data(), b_hi.data()}},
              info(f).products, info(f).fraction_bits, c.data());
}

}  // namespace numgate::shadow
