// Matrices of a team: the part of Eigen's language that the forms speak, executed by the threads of
// a block together. Every operation is complete when it returns, for every thread.
#pragma once
#include <utility>

#include "oracles/cuda/team.h"
#include "oracles/forms/sites.h"

namespace numgate::team {

using forms::Index;
class Matrix;

// Anything with rows, columns and elements.
template <class E>
struct Expression {
  NUMGATE_INLINE const E& self() const { return static_cast<const E&>(*this); }
  NUMGATE_INLINE Matrix eval() const;
};

struct Replaces {
  NUMGATE_INLINE double operator()(double, double x) const { return x; }
};
struct Adds {
  NUMGATE_INLINE double operator()(double y, double x) const { return y + x; }
};
struct Subtracts {
  NUMGATE_INLINE double operator()(double y, double x) const { return y - x; }
};
struct Multiplies {
  NUMGATE_INLINE double operator()(double y, double x) const { return y * x; }
};

class View;
struct Diagonal;
template <class Combine, class A, class B>
struct Elementwise;

// Parts of something that has a view().
template <class D>
struct Parts {
  NUMGATE_INLINE View block(Index i, Index j, Index rows, Index cols) const;
  NUMGATE_INLINE View transpose() const;
  NUMGATE_INLINE View diagonal() const;
  NUMGATE_INLINE View replicate(Index rows, Index cols) const;  // of a row, a column, an element
  NUMGATE_INLINE View array() const;
  NUMGATE_INLINE View row(Index i) const;
  NUMGATE_INLINE View col(Index j) const;
  NUMGATE_INLINE View middleRows(Index i, Index n) const;
  NUMGATE_INLINE View middleCols(Index j, Index n) const;
  NUMGATE_INLINE View leftCols(Index n) const;
  NUMGATE_INLINE View rightCols(Index n) const;
  NUMGATE_INLINE View topRows(Index n) const;
  NUMGATE_INLINE View bottomRows(Index n) const;
  NUMGATE_INLINE View topLeftCorner(Index rows, Index cols) const;
  NUMGATE_INLINE View head(Index n) const;     // of a row
  NUMGATE_INLINE Diagonal asDiagonal() const;  // of a column
  NUMGATE_INLINE Elementwise<Multiplies, View, View> cwiseProduct(const View& b) const;

 private:
  NUMGATE_INLINE View view() const;
};

// Elements at steps of `down` and `right`.
class View : public Expression<View>, public Parts<View> {
 public:
  NUMGATE_INLINE View(double* data, int rows, int cols, int down, int right)
      : data_(data), rows_(rows), cols_(cols), down_(down), right_(right) {}
  View(const View&) = default;

  NUMGATE_INLINE int rows() const { return rows_; }
  NUMGATE_INLINE int cols() const { return cols_; }
  NUMGATE_INLINE double& at(int i, int j) const { return data_[i * down_ + j * right_]; }
  NUMGATE_INLINE View part(Index i, Index j, Index rows, Index cols) const {
    return {&at(static_cast<int>(i), static_cast<int>(j)), static_cast<int>(rows),
            static_cast<int>(cols), down_, right_};
  }
  NUMGATE_INLINE View stepping(Index rows, Index cols, int down, int right) const {
    return {data_, static_cast<int>(rows), static_cast<int>(cols), down, right};
  }
  NUMGATE_INLINE int down() const { return down_; }
  NUMGATE_INLINE int right() const { return right_; }

  template <class E, class Combine>
  NUMGATE_INLINE void assign(const E& e, Combine combine) const {
    const int n = rows_ * cols_;
    for (int x = rank(); x < n; x += size()) {
      const int i = x / cols_, j = x - i * cols_;
      double& to = at(i, j);
      to = combine(to, e.at(i, j));
    }
    sync();
  }
  NUMGATE_INLINE const View& operator=(const View& e) const {
    assign(e, Replaces());
    return *this;
  }
  template <class E>
  NUMGATE_INLINE const View& operator=(const Expression<E>& e) const {
    assign(e.self(), Replaces());
    return *this;
  }
  template <class E>
  NUMGATE_INLINE const View& operator+=(const Expression<E>& e) const {
    assign(e.self(), Adds());
    return *this;
  }
  NUMGATE_INLINE void setOnes() const;

 private:
  double* data_;
  int rows_, cols_, down_, right_;
};

// f(i, j).
template <class F>
struct Nullary : Expression<Nullary<F>> {
  int rows_, cols_;
  F f;
  NUMGATE_INLINE Nullary(Index rows, Index cols, F f)
      : rows_(static_cast<int>(rows)), cols_(static_cast<int>(cols)), f(std::move(f)) {}
  NUMGATE_INLINE int rows() const { return rows_; }
  NUMGATE_INLINE int cols() const { return cols_; }
  NUMGATE_INLINE double at(int i, int j) const { return f(i, j); }
};
struct Filled {
  double off, on;  // off and on the diagonal
  NUMGATE_INLINE double operator()(Index i, Index j) const { return i == j ? on : off; }
};
NUMGATE_INLINE void View::setOnes() const {
  assign(Nullary<Filled>(rows_, cols_, {1, 1}), Replaces());
}

// Dense, row-major, in the team's memory.
class Matrix : public Expression<Matrix>, public Parts<Matrix> {
 public:
  using Scalar = double;

  Matrix() = default;
  NUMGATE_INLINE Matrix(Index rows, Index cols) { allocate(rows, cols); }
  template <class E>
  NUMGATE_INLINE Matrix(const Expression<E>& e) {
    allocate(e.self().rows(), e.self().cols());
    all() = e;
  }
  NUMGATE_INLINE Matrix(const Matrix& m) : Matrix(static_cast<const Expression<Matrix>&>(m)) {}
  NUMGATE_INLINE Matrix(Matrix&& m) noexcept { swap(m); }
  // By value: an expression is whole before its target goes.
  NUMGATE_INLINE Matrix& operator=(Matrix m) noexcept {
    swap(m);
    return *this;
  }
  NUMGATE_INLINE ~Matrix() { release(granules_); }

  // Dense elements that belong to someone else.
  NUMGATE_INLINE static Matrix borrow(double* data, Index rows, Index cols) {
    Matrix m;
    m.data_ = data;
    m.rows_ = static_cast<int>(rows);
    m.cols_ = static_cast<int>(cols);
    return m;
  }

  NUMGATE_INLINE int rows() const { return rows_; }
  NUMGATE_INLINE int cols() const { return cols_; }
  NUMGATE_INLINE int size() const { return rows_ * cols_; }
  NUMGATE_INLINE double* data() const { return data_; }
  NUMGATE_INLINE double at(int i, int j) const { return data_[i * cols_ + j]; }
  NUMGATE_INLINE View all() const { return {data_, rows_, cols_, cols_, 1}; }

  template <class E>
  NUMGATE_INLINE Matrix& operator+=(const Expression<E>& e) {
    all() += e;
    return *this;
  }
  // Within an expression only: nothing else waits for all threads to have read.
  NUMGATE_INLINE double operator()(Index i, Index j) const {
    return at(static_cast<int>(i), static_cast<int>(j));
  }
  NUMGATE_INLINE void setZero() { all() = Zero(rows_, cols_); }
  NUMGATE_INLINE void setZero(Index rows, Index cols) { *this = Zero(rows, cols); }

  template <class F>
  NUMGATE_INLINE static Nullary<F> NullaryExpr(Index rows, Index cols, F f) {
    return {rows, cols, std::move(f)};
  }
  NUMGATE_INLINE static Nullary<Filled> Constant(Index rows, Index cols, double x) {
    return {rows, cols, {x, x}};
  }
  NUMGATE_INLINE static Nullary<Filled> Zero(Index rows, Index cols) {
    return Constant(rows, cols, 0);
  }
  NUMGATE_INLINE static Nullary<Filled> Identity(Index rows, Index cols) {
    return {rows, cols, {0, 1}};
  }

 private:
  NUMGATE_INLINE void allocate(Index rows, Index cols) {
    rows_ = static_cast<int>(rows);
    cols_ = static_cast<int>(cols);
    granules_ = take(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(cols_));
    data_ = address(granules_);
  }
  NUMGATE_INLINE void swap(Matrix& m) noexcept {
    std::swap(data_, m.data_);
    std::swap(rows_, m.rows_);
    std::swap(cols_, m.cols_);
    std::swap(granules_, m.granules_);
  }

  double* data_ = nullptr;
  int rows_ = 0, cols_ = 0;
  std::uint64_t granules_ = 0;  // none where borrowed
};

template <class E>
NUMGATE_INLINE Matrix Expression<E>::eval() const {
  return Matrix(*this);
}

// An expression's operands are held by value; a matrix as the view of it.
NUMGATE_INLINE View held(const Expression<Matrix>& m) { return m.self().all(); }
template <class E>
NUMGATE_INLINE const E& held(const Expression<E>& e) {
  return e.self();
}
template <class E>
struct HeldBy {
  using Type = E;
};
template <>
struct HeldBy<Matrix> {
  using Type = View;
};
template <class E>
using Held = typename HeldBy<E>::Type;

template <class E>
struct Transposed : Expression<Transposed<E>> {
  E e;
  NUMGATE_INLINE explicit Transposed(const E& e) : e(e) {}
  NUMGATE_INLINE int rows() const { return e.cols(); }
  NUMGATE_INLINE int cols() const { return e.rows(); }
  NUMGATE_INLINE double at(int i, int j) const { return e.at(j, i); }
};
template <class Combine, class A, class B>
struct Elementwise : Expression<Elementwise<Combine, A, B>> {
  A a;
  B b;
  NUMGATE_INLINE Elementwise(const A& a, const B& b) : a(a), b(b) {}
  NUMGATE_INLINE int rows() const { return a.rows(); }
  NUMGATE_INLINE int cols() const { return a.cols(); }
  NUMGATE_INLINE double at(int i, int j) const { return Combine()(a.at(i, j), b.at(i, j)); }
  NUMGATE_INLINE Transposed<Elementwise> transpose() const {
    return Transposed<Elementwise>(*this);
  }
};
template <class A, class B>
NUMGATE_INLINE Elementwise<Adds, Held<A>, Held<B>> operator+(const Expression<A>& a,
                                                             const Expression<B>& b) {
  return {held(a), held(b)};
}
template <class A, class B>
NUMGATE_INLINE Elementwise<Subtracts, Held<A>, Held<B>> operator-(const Expression<A>& a,
                                                                  const Expression<B>& b) {
  return {held(a), held(b)};
}

// Every element with one number.
template <class Combine, class A>
struct WithScalar : Expression<WithScalar<Combine, A>> {
  A a;
  double x;
  NUMGATE_INLINE WithScalar(const A& a, double x) : a(a), x(x) {}
  NUMGATE_INLINE int rows() const { return a.rows(); }
  NUMGATE_INLINE int cols() const { return a.cols(); }
  NUMGATE_INLINE double at(int i, int j) const { return Combine()(a.at(i, j), x); }
};
template <class A>
NUMGATE_INLINE WithScalar<Multiplies, Held<A>> operator*(const Expression<A>& a, double x) {
  return {held(a), x};
}
template <class A>
NUMGATE_INLINE WithScalar<Adds, Held<A>> operator+(const Expression<A>& a, double x) {
  return {held(a), x};
}
template <class A>
NUMGATE_INLINE WithScalar<Multiplies, Held<A>> operator-(const Expression<A>& a) {
  return {held(a), -1};
}

template <class D>
NUMGATE_INLINE View Parts<D>::view() const {
  if constexpr (requires(const D& d) { d.all(); })
    return static_cast<const D&>(*this).all();
  else
    return static_cast<const D&>(*this);
}
template <class D>
NUMGATE_INLINE View Parts<D>::block(Index i, Index j, Index rows, Index cols) const {
  return view().part(i, j, rows, cols);
}
template <class D>
NUMGATE_INLINE View Parts<D>::transpose() const {
  const View v = view();
  return v.stepping(v.cols(), v.rows(), v.right(), v.down());
}
template <class D>
NUMGATE_INLINE View Parts<D>::diagonal() const {
  const View v = view();
  return v.stepping(v.rows() < v.cols() ? v.rows() : v.cols(), 1, v.down() + v.right(), 0);
}
template <class D>
NUMGATE_INLINE View Parts<D>::replicate(Index rows, Index cols) const {
  const View v = view();
  return v.stepping(v.rows() * rows, v.cols() * cols, v.rows() == 1 ? 0 : v.down(),
                    v.cols() == 1 ? 0 : v.right());
}
template <class D>
NUMGATE_INLINE View Parts<D>::array() const {
  return view();
}
template <class D>
NUMGATE_INLINE View Parts<D>::row(Index i) const {
  return block(i, 0, 1, view().cols());
}
template <class D>
NUMGATE_INLINE View Parts<D>::col(Index j) const {
  return block(0, j, view().rows(), 1);
}
template <class D>
NUMGATE_INLINE View Parts<D>::middleRows(Index i, Index n) const {
  return block(i, 0, n, view().cols());
}
template <class D>
NUMGATE_INLINE View Parts<D>::middleCols(Index j, Index n) const {
  return block(0, j, view().rows(), n);
}
template <class D>
NUMGATE_INLINE View Parts<D>::leftCols(Index n) const {
  return middleCols(0, n);
}
template <class D>
NUMGATE_INLINE View Parts<D>::rightCols(Index n) const {
  return middleCols(view().cols() - n, n);
}
template <class D>
NUMGATE_INLINE View Parts<D>::topRows(Index n) const {
  return middleRows(0, n);
}
template <class D>
NUMGATE_INLINE View Parts<D>::bottomRows(Index n) const {
  return middleRows(view().rows() - n, n);
}
template <class D>
NUMGATE_INLINE View Parts<D>::topLeftCorner(Index rows, Index cols) const {
  return block(0, 0, rows, cols);
}
template <class D>
NUMGATE_INLINE View Parts<D>::head(Index n) const {
  return leftCols(n);
}

template <class D>
NUMGATE_INLINE Elementwise<Multiplies, View, View> Parts<D>::cwiseProduct(const View& b) const {
  return {view(), b};
}

// diag(d) m.
struct Diagonal {
  View d;
};
template <class D>
NUMGATE_INLINE Diagonal Parts<D>::asDiagonal() const {
  return {view()};
}
struct DiagonalProduct : Expression<DiagonalProduct> {
  View d, m;
  NUMGATE_INLINE DiagonalProduct(View d, View m) : d(d), m(m) {}
  NUMGATE_INLINE int rows() const { return m.rows(); }
  NUMGATE_INLINE int cols() const { return m.cols(); }
  NUMGATE_INLINE double at(int i, int j) const { return d.at(i, 0) * m.at(i, j); }
};
NUMGATE_INLINE DiagonalProduct operator*(const Diagonal& d, const Matrix& m) {
  return {d.d, m.all()};
}

}  // namespace numgate::team
