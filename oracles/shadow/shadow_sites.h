// The Sites of the shadow: every site of a form rounds as its declared format does, at random or as
// hardware does.
#pragma once
#include <array>
#include <bitset>
#include <cstdint>

#include "core/plan.h"
#include "oracles/forms/sites.h"
#include "oracles/shadow/vector.h"

namespace numgate::shadow {

// One draw. With `emulate` roundings are the hardware's own: to nearest, correctly rounded
// elementary functions.
struct Draw {
  Reading reading = Reading::independent;
  int index = 0, count = 1;  // of the draws that share the strata of mode D
  std::uint64_t seed = 0;
  bool emulate = false;
};

class ShadowSites {
 public:
  using Real = double;
  using M = forms::Matrix<double>;
  using Operand = forms::Operand<double>;

  // Sites outside `active` are exact.
  ShadowSites(const Plan& plan, const Draw& draw,
              std::bitset<kSiteCount> active = ~std::bitset<kSiteCount>());

  Format format(Site site) const { return plan_[site]; }
  void round(Site site, M& m);
  void multiply(Site site, M& m, const M& b);
  void exp2(Site site, M& m);
  void exp(Site site, M& m);
  void sigmoid(Site site, M& m);
  void softplus(Site site, M& m);
  void rsqrt(Site site, M& m);
  double constant(Site site, double x);
  void store(Site site, Operand& x);
  void state(Operand& s, M m);
  void dot(Site site, const Operand& a, const Operand& b, M& c);
  void vector_dot(Site site, const Operand& a, const Operand& b, M& c);
  void fma_dot(Site site, const M& a, const M& b, M& c);

  // Sites that have rounded something so far.
  const std::bitset<kSiteCount>& used() const { return used_; }

 private:
  // What is rounded at a site; each has its own offset in mode D, or the errors of one product
  // would be one.
  enum Role : std::uint8_t { product, elementary, stored, left, right, sum, kRoles };

  bool rounds(Site site);
  double offset(Site site, Role role) const {
    return offsets_[static_cast<std::size_t>(site)][role];
  }
  void round_as(Format f, Site site, Role role, M& m, double amplitude = 1);
  void elementary_error(Site site, M& m, double amplitude);
  M operand(Site site, Format f, Role role, const Operand& x);

  Plan plan_;
  Reading reading_;
  bool emulate_;
  std::bitset<kSiteCount> active_, used_;
  std::array<std::array<double, kRoles>, kSiteCount> offsets_{};
  Random random_;
};

}  // namespace numgate::shadow
