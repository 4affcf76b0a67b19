// The Sites of the shadow on the host.
#pragma once
#include <bitset>
#include <cstddef>

#include "oracles/forms/matrix.h"
#include "oracles/shadow/rounding_sites.h"

namespace numgate::shadow {

// One draw. With `emulate` roundings are the hardware's own: to nearest, correctly rounded
// elementary functions.
struct Draw {
  Reading reading = Reading::independent;
  int index = 0, count = 1;  // of the draws that share the strata of mode D
  std::uint64_t seed = 0;
  bool emulate = false;
};

// Sites outside `active` are exact.
DrawTable draw_table(const Plan& plan, const Draw& draw,
                     std::bitset<kSiteCount> active = ~std::bitset<kSiteCount>());

// Rounding on Eigen's matrices, eight doubles at a time.
class HostArithmetic {
 public:
  using M = forms::Matrix<double>;

  explicit HostArithmetic(std::uint64_t stream) : random_(stream) {}

  void round_to(const FormatInfo& f, Reading reading, M& m, double offset, double amplitude);
  void product(Reading reading, M& m, const M& b, double offset);
  void exp2(M& m);
  void exp(M& m);
  void sigmoid(M& m);
  void softplus(M& m);
  void rsqrt(M& m);
  void multiply(M& m, const M& b);
  void add_product(const M& a, const M& b, M& c);
  bool all_finite(const M& m) { return m.allFinite(); }
  void fma_chain(Reading reading, const M& a, const M& b, M& c, double offset);
  template <std::size_t N>
  void tensor_core(const M* const (&pieces)[N][2], const FormatInfo& f, M& c) {
    tensor_core(pieces, N, f, c);
  }

 private:
  void tensor_core(const M* const (*pieces)[2], std::size_t count, const FormatInfo& f, M& c);

  Random random_;
};
extern template class RoundingSites<HostArithmetic>;

// Keeps the table that RoundingSites reads.
class ShadowSites : DrawTable, public RoundingSites<HostArithmetic> {
 public:
  explicit ShadowSites(const Plan& plan, const Draw& draw,
                       std::bitset<kSiteCount> active = ~std::bitset<kSiteCount>())
      : ShadowSites(draw_table(plan, draw, active)) {}
  explicit ShadowSites(const DrawTable& table)
      : DrawTable(table),
        RoundingSites(static_cast<const DrawTable&>(*this), HostArithmetic(table.stream)) {}
  ShadowSites(const ShadowSites&) = delete;  // its base refers to its table
  ShadowSites& operator=(const ShadowSites&) = delete;

  const DrawTable& table() const { return *this; }
  std::bitset<kSiteCount> used() const { return used_bits(); }
};

}  // namespace numgate::shadow
