// Sites that round nothing: at the truth scalars a form must then equal its definition.
#pragma once
#include <cmath>

#include "oracles/forms/matrix.h"

namespace numgate::forms {

// By argument-dependent lookup, which a member function of the same name would end.
template <class Real>
Real apply_sigmoid(const Real& x) {
  return sigmoid(x);
}
template <class Real>
Real apply_softplus(const Real& x) {
  return softplus(x);
}

template <class Scalar>
class ExactSites {
 public:
  using Real = Scalar;
  using M = Matrix<Real>;

  explicit ExactSites(const Formats& formats) : formats_(formats) {}

  Format format(Site site) const { return formats_[static_cast<std::size_t>(site)]; }
  void round(Site, M&) {}
  void multiply(Site, M& m, const M& b) { m = m.cwiseProduct(b).eval(); }
  void exp2(Site, M& m) {
    using std::exp;
    const Real ln2 = Real(1.0) / log2_of_e<Real>();
    map(m, [&](const Real& x) { return Real(exp(x * ln2)); });
  }
  void exp(Site, M& m) {
    using std::exp;
    map(m, [](const Real& x) { return Real(exp(x)); });
  }
  void sigmoid(Site, M& m) {
    map(m, [](const Real& x) { return ::numgate::forms::apply_sigmoid(x); });
  }
  void softplus(Site, M& m) {
    map(m, [](const Real& x) { return ::numgate::forms::apply_softplus(x); });
  }
  void rsqrt(Site, M& m) {
    using std::sqrt;
    map(m, [](const Real& x) { return Real(Real(1.0) / sqrt(x)); });
  }
  Real constant(Site, const Real& x) { return x; }
  void store(Site, Operand<M>&) {}
  void state(Operand<M>& s, M m) { s.values = std::move(m); }
  void dot(Site, const Operand<M>& a, const Operand<M>& b, M& c) { add(a.values, b.values, c); }
  void vector_dot(Site, const Operand<M>& a, const Operand<M>& b, M& c) {
    add(a.values, b.values, c);
  }
  void fma_dot(Site, const M& a, const M& b, M& c) { add(a, b, c); }

 private:
  template <class F>
  static void map(M& m, F f) {
    for (Eigen::Index i = 0; i < m.size(); ++i) m.data()[i] = f(m.data()[i]);
  }
  static void add(const M& a, const M& b, M& c) {
    for (Eigen::Index i = 0; i < a.rows(); ++i)
      for (Eigen::Index k = 0; k < a.cols(); ++k)
        for (Eigen::Index j = 0; j < b.cols(); ++j) c(i, j) += a(i, k) * b(k, j);
  }

  Formats formats_;
};

}  // namespace numgate::forms
