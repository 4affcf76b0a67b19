// The shadow's rounding on the matrices of a team; see shadow/rounding_sites.h.
#pragma once
#include <cmath>
#include <cstddef>

#include "oracles/cuda/team_matrix.h"
#include "oracles/shadow/steps.h"

namespace numgate::team {

using shadow::Reading;

class Arithmetic {
 public:
  using M = Matrix;

  // `stream` seeds this thread's noise.
  NUMGATE_HOST_DEVICE explicit Arithmetic(std::uint64_t stream)
      : random_(shadow::mix(stream + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(rank()))) {}

  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void round_to(const FormatInfo& f, Reading reading, M& m,
                                                     double offset, double amplitude) {
    const shadow::Grid grid(f);
    auto random = random_;
    if (grid.truncates)
      map(m, [&](double x) { return shadow::cut(grid, x); });
    else if (reading == Reading::independent)
      map(m, [&](double x) {
        return shadow::to_nearest<Reading::independent>(grid, x, offset, amplitude, random);
      });
    else
      map(m, [&](double x) {
        return shadow::to_nearest<Reading::dithered>(grid, x, offset, amplitude, random);
      });
    random_ = random;
  }
  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void product(Reading reading, M& m, const M& b,
                                                    double offset) {
    auto random = random_;
    const double* factor = b.data();
    if (reading == Reading::independent)
      map(m, [&](double x, int i) {
        return shadow::product_step<Reading::independent>(x, factor[i], offset, random);
      });
    else
      map(m, [&](double x, int i) {
        return shadow::product_step<Reading::dithered>(x, factor[i], offset, random);
      });
    random_ = random;
  }
  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void multiply(M& m, const M& b) {
    const double* factor = b.data();
    map(m, [&](double x, int i) { return x * factor[i]; });
  }
  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void exp2(M& m) {
    map(m, [](double x) { return shadow::exp2_of(x); });
  }
  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void exp(M& m) {
    map(m, [](double x) { return std::exp(x); });
  }
  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void sigmoid(M& m) {
    map(m, [](double x) { return 1 / (1 + std::exp(-x)); });
  }
  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void softplus(M& m) {
    map(m, [](double x) { return (x > 0 ? x : 0.0) + std::log1p(std::exp(-std::abs(x))); });
  }
  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void rsqrt(M& m) {
    map(m, [](double x) { return 1 / std::sqrt(x); });
  }
  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE bool all_finite(const M& m) {
    bool finite = true;
    for (int x = rank(); x < m.size(); x += size())
      finite = finite && (bits_of(m.data()[x]) & shadow::kExponent) != shadow::kExponent;
    return all(finite);
  }

  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void add_product(const M& a, const M& b, M& c) {
    const int n = b.cols(), k = a.cols();
    for (int x = rank(); x < c.size(); x += size()) {
      const int i = x / n, j = x - i * n;
      double sum = c.data()[x];
      for (int s = 0; s < k; ++s) sum = fused(a.at(i, s), b.at(s, j), sum);
      c.data()[x] = sum;
    }
    sync();
  }
  // c <- c + a b, see shadow/dot.h.
  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void fma_chain(Reading reading, const M& a, const M& b, M& c,
                                                      double offset) {
    const Chain<Reading::independent> independent{a.data(), b.data(), offset};
    const Chain<Reading::dithered> dithered{a.data(), b.data(), offset};
    if (reading == Reading::independent)
      by_tiles(a.cols(), c, independent);
    else
      by_tiles(a.cols(), c, dithered);
  }
  template <std::size_t N>
  NUMGATE_HOST_DEVICE NUMGATE_NOINLINE void tensor_core(const M* const (&pieces)[N][2],
                                                        const FormatInfo& f, M& c) {
    const int k = pieces[0][0]->cols();
    if (f.products == 8)
      by_tiles(k, c, Steps<8, N>(pieces, f.fraction_bits));
    else
      by_tiles(k, c, Steps<16, N>(pieces, f.fraction_bits));
  }

 private:
  template <class F>
  NUMGATE_INLINE static void map(M& m, F f) {
    double* data = m.data();
    for (int x = rank(); x < m.size(); x += size()) {
      if constexpr (requires { f(0.0, 0); })
        data[x] = f(data[x], x);
      else
        data[x] = f(data[x]);
    }
    sync();
  }

  // One column of a tile of R rows, `row[r]` elements into a, held in registers.
  template <Reading reading>
  struct Chain {
    static constexpr int kHeight = 4;
    const double *a, *b;
    double offset;

    template <int R>
    NUMGATE_INLINE void run(double (&sum)[R], const int (&row)[R], int column, int n, int k,
                            shadow::ScalarRandom& random) const {
      for (int s = 0; s < k; ++s) {
        const double y = b[s * n + column];
        NUMGATE_UNROLL
        for (int r = 0; r < R; ++r)
          sum[r] = shadow::fma_step<reading>(a[row[r] + s], y, sum[r], offset, random);
      }
    }
  };
  template <int L, std::size_t N>
  struct Steps {
    static constexpr int kHeight = 1;
    const double *a[N], *b[N];
    int fraction_bits;

    NUMGATE_INLINE Steps(const M* const (&pieces)[N][2], int fraction_bits)
        : fraction_bits(fraction_bits) {
      for (std::size_t p = 0; p < N; ++p) a[p] = pieces[p][0]->data(), b[p] = pieces[p][1]->data();
    }
    template <int R>
    NUMGATE_INLINE void run(double (&sum)[R], const int (&row)[R], int column, int n, int k,
                            shadow::ScalarRandom&) const {
      for (int s = 0; s < k; s += L) {
        NUMGATE_UNROLL
        for (std::size_t p = 0; p < N; ++p) {
          if (s + L <= k)
            step<L>(sum, row, a[p] + s, b[p] + s * n + column, n, L);
          else
            step<0>(sum, row, a[p] + s, b[p] + s * n + column, n, k - s);
        }
      }
    }
    // One step of each row; `left` of its L products, at least `Sure`, are within the operands.
    template <int Sure, int R>
    NUMGATE_INLINE void step(double (&sum)[R], const int (&row)[R], const double* rows,
                             const double* columns, int n, int left) const {
      double y[L];
      NUMGATE_UNROLL
      for (int l = 0; l < L; ++l) y[l] = l < Sure || l < left ? columns[l * n] : 0;
      NUMGATE_UNROLL
      for (int r = 0; r < R; ++r) {
        double x[L];
        std::int64_t live = 0;  // a step in which a whole piece of a row is zero changes nothing
        NUMGATE_UNROLL
        for (int l = 0; l < L; ++l) {
          x[l] = l < Sure || l < left ? rows[row[r] + l] : 0;
          live |= bits_of(x[l]) & shadow::kMagnitude;
        }
        if (live != 0)
          sum[r] = shadow::tensor_core_step<L>([&](int l) { return x[l]; },
                                               [&](int l) { return y[l]; }, sum[r], fraction_bits);
      }
    }
  };

  // Each thread computes columns of tiles, as high as leaves work for all threads.
  template <class Product>
  NUMGATE_HOST_DEVICE void by_tiles(int k, M& c, const Product& product) {
    if (c.size() >= Product::kHeight * size())
      by_tiles_of<Product::kHeight>(k, c, product);
    else
      by_tiles_of<1>(k, c, product);
  }
  template <int R, class Product>
  NUMGATE_HOST_DEVICE void by_tiles_of(int k, M& c, const Product& product) {
    const int m = c.rows(), n = c.cols(), tiles = (m + R - 1) / R;
    auto random = random_;
    for (int task = rank(); task < tiles * n; task += size()) {
      const int tile = task / n, column = task - tile * n;
      int row[R];  // beyond the last row: that row again, computed in vain
      double sum[R];
      NUMGATE_UNROLL
      for (int r = 0; r < R; ++r) {
        const int i = tile * R + r < m ? tile * R + r : m - 1;
        row[r] = i * k;
        sum[r] = c.at(i, column);
      }
      product.run(sum, row, column, n, k, random);
      NUMGATE_UNROLL
      for (int r = 0; r < R; ++r)
        if (tile * R + r < m) c.data()[(tile * R + r) * n + column] = sum[r];
    }
    random_ = random;
    sync();
  }

  shadow::ScalarRandom random_;
};

}  // namespace numgate::team
