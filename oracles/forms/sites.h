// What a form asks of its arithmetic. A form is a template over `Sites`, which says what happens
// wherever a production kernel rounds; the same text is then read as truth, as shadow or as an
// emulated kernel.
//
// A Sites has a scalar type `Real` and, for row-major matrices of it, whole and in place:
// - format(site): what the plan declares, where that decides between algorithms.
// - round(site, m): an fp32 operation of the kernel produced m; its error belongs to `site`.
// - multiply(site, m, b): m <- m .* b, rounded to fp32; exact where b is 1.
// - exp2, exp, sigmoid, softplus, rsqrt(site, m): rounded as the kernels' own; exp(0) is exact.
// - constant(site, x): a constant kept in fp32, one rounding for the whole run.
// - store(site, operand): written in the plan's format of a store site. Rounding is idempotent, so
//   nothing happens where the format it is already in is at least as narrow.
// - state(operand, m): m, the result of one fused operation, stored at site `state`.
// - dot(site, a, b, c): c <- c + a b with the operands and on the unit that the plan gives a dot
//   site; a zero product changes nothing.
// - vector_dot(site, a, b, c): the operands rounded to the plan's format, then fp32 fused
//   multiply-adds.
// - fma_dot(site, a, b, c): the same by fp32 fused multiply-adds, whatever the plan.
//
// ExactSites rounds nothing: at the truth scalars a form must then equal its definition.
#pragma once
#include <Eigen/Core>
#include <cmath>

#include "core/plan.h"
#include "oracles/scalars/real.h"

namespace numgate::forms {

template <class Real>
using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class Real>
Real log2_of_e() {
  return constant<Real>(
      "1."
      "442695040888963407359924681001892137426645954152985934135449406931109219181185079885526623");
}

// A matrix and the format that its values are known to be in.
template <class Real>
struct Operand {
  Matrix<Real> values;
  Format stored = Format::ieee;
};

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

  explicit ExactSites(const Formats& formats) : formats_(formats) {}

  Format format(Site site) const { return formats_[static_cast<std::size_t>(site)]; }
  void round(Site, Matrix<Real>&) {}
  void multiply(Site, Matrix<Real>& m, const Matrix<Real>& b) { m = m.cwiseProduct(b).eval(); }
  void exp2(Site, Matrix<Real>& m) {
    using std::exp;
    const Real ln2 = Real(1.0) / log2_of_e<Real>();
    map(m, [&](const Real& x) { return Real(exp(x * ln2)); });
  }
  void exp(Site, Matrix<Real>& m) {
    using std::exp;
    map(m, [](const Real& x) { return Real(exp(x)); });
  }
  void sigmoid(Site, Matrix<Real>& m) {
    map(m, [](const Real& x) { return ::numgate::forms::apply_sigmoid(x); });
  }
  void softplus(Site, Matrix<Real>& m) {
    map(m, [](const Real& x) { return ::numgate::forms::apply_softplus(x); });
  }
  void rsqrt(Site, Matrix<Real>& m) {
    using std::sqrt;
    map(m, [](const Real& x) { return Real(Real(1.0) / sqrt(x)); });
  }
  Real constant(Site, const Real& x) { return x; }
  void store(Site, Operand<Real>&) {}
  void state(Operand<Real>& s, Matrix<Real> m) { s.values = std::move(m); }
  void dot(Site, const Operand<Real>& a, const Operand<Real>& b, Matrix<Real>& c) {
    add(a.values, b.values, c);
  }
  void vector_dot(Site, const Operand<Real>& a, const Operand<Real>& b, Matrix<Real>& c) {
    add(a.values, b.values, c);
  }
  void fma_dot(Site, const Matrix<Real>& a, const Matrix<Real>& b, Matrix<Real>& c) {
    add(a, b, c);
  }

 private:
  template <class F>
  static void map(Matrix<Real>& m, F f) {
    for (Eigen::Index i = 0; i < m.size(); ++i) m.data()[i] = f(m.data()[i]);
  }
  static void add(const Matrix<Real>& a, const Matrix<Real>& b, Matrix<Real>& c) {
    for (Eigen::Index i = 0; i < a.rows(); ++i)
      for (Eigen::Index k = 0; k < a.cols(); ++k)
        for (Eigen::Index j = 0; j < b.cols(); ++j) c(i, j) += a(i, k) * b(k, j);
  }

  Formats formats_;
};

}  // namespace numgate::forms
