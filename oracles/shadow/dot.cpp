#include "oracles/shadow/dot.h"

#include <algorithm>

namespace numgate::shadow {

// Columns [j, j + width) of b [k n] as a dense panel of `rows` >= k rows; beyond b there is zero.
static void pack(const double* b, std::size_t k, std::size_t n, std::size_t j, std::size_t width,
                 std::size_t rows, std::vector<double>& panel) {
  panel.assign(rows * width, 0.0);
  const std::size_t columns = std::min(width, n - j);
  for (std::size_t i = 0; i < k; ++i) std::copy_n(b + i * n + j, columns, panel.data() + i * width);
}

namespace {

constexpr std::size_t kRows = 4, kVectors = 2, kWidth = kVectors * kLanes;

// The rows of one block, transposed, without the k at which all of them are zero.
struct RowBlock {
  std::vector<double> a;        // [steps kRows]
  std::vector<std::size_t> at;  // k of each step

  void gather(const double* from, std::size_t rows, std::size_t k) {
    a.clear();
    at.clear();
    for (std::size_t i = 0; i < k; ++i) {
      double column[kRows] = {};
      bool any = false;
      for (std::size_t r = 0; r < rows; ++r) any |= (column[r] = from[r * k + i]) != 0;
      if (!any) continue;
      a.insert(a.end(), column, column + kRows);
      at.push_back(i);
    }
  }
};

}  // namespace

template <Reading reading>
static void chain_block(const RowBlock& block, const double* panel, Pack (&c)[kRows][kVectors],
                        double offset, Random& random) {
  Random local = random;
  for (std::size_t s = 0; s < block.at.size(); ++s) {
    const double* b = panel + block.at[s] * kWidth;
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t v = 0; v < kVectors; ++v) {
        c[r][v] = fma_step<reading>(broadcast(block.a[s * kRows + r]), load(b + v * kLanes),
                                    c[r][v], offset, local);
      }
  }
  random = local;
}

void fma_chain(Reading reading, ProductShape s, const double* a, const double* b, double* c,
               double offset, Random& random) {
  std::vector<double> panel;
  std::vector<RowBlock> blocks((s.m + kRows - 1) / kRows);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks[i].gather(a + i * kRows * s.k, std::min(kRows, s.m - i * kRows), s.k);
  for (std::size_t j = 0; j < s.n; j += kWidth) {
    pack(b, s.k, s.n, j, kWidth, s.k, panel);
    const std::size_t columns = std::min(kWidth, s.n - j);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::size_t rows = std::min(kRows, s.m - i * kRows);
      double tile[kRows][kWidth] = {};
      for (std::size_t r = 0; r < rows; ++r)
        std::copy_n(c + (i * kRows + r) * s.n + j, columns, tile[r]);
      Pack acc[kRows][kVectors];
      for (std::size_t r = 0; r < kRows; ++r)
        for (std::size_t v = 0; v < kVectors; ++v) acc[r][v] = load(tile[r] + v * kLanes);
      if (reading == Reading::independent)
        chain_block<Reading::independent>(blocks[i], panel.data(), acc, offset, random);
      else
        chain_block<Reading::dithered>(blocks[i], panel.data(), acc, offset, random);
      for (std::size_t r = 0; r < kRows; ++r)
        for (std::size_t v = 0; v < kVectors; ++v) save(tile[r] + v * kLanes, acc[r][v]);
      for (std::size_t r = 0; r < rows; ++r)
        std::copy_n(tile[r], columns, c + (i * kRows + r) * s.n + j);
    }
  }
}

template <int L>
static void tensor_core_product(ProductShape s, const std::vector<Pieces>& pieces,
                                int fraction_bits, double* c) {
  const std::size_t k = (s.k + L - 1) / L * L;
  std::vector<std::vector<double>> rows(pieces.size()), panels(pieces.size());
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    rows[p].assign(s.m * k, 0.0);
    for (std::size_t i = 0; i < s.m; ++i)
      std::copy_n(pieces[p].a + i * s.k, s.k, rows[p].data() + i * k);
  }
  // Steps in which a whole piece of a row is zero change nothing.
  std::vector<char> live(pieces.size() * s.m * (k / L));
  for (std::size_t p = 0; p < pieces.size(); ++p)
    for (std::size_t i = 0; i < s.m * (k / L); ++i)
      live[p * s.m * (k / L) + i] =
          std::any_of(&rows[p][i * L], &rows[p][i * L] + L, [](double x) { return x != 0; });
  for (std::size_t j = 0; j < s.n; j += kLanes) {
    const std::size_t columns = std::min<std::size_t>(kLanes, s.n - j);
    for (std::size_t p = 0; p < pieces.size(); ++p)
      pack(pieces[p].b, s.k, s.n, j, kLanes, k, panels[p]);
    // A step waits for the one before it: rows side by side keep the processor busy.
    for (std::size_t i = 0; i < s.m; i += kRows) {
      const std::size_t count = std::min(kRows, s.m - i);
      double tile[kRows][kLanes] = {};
      Pack acc[kRows];
      for (std::size_t r = 0; r < count; ++r) {
        std::copy_n(c + (i + r) * s.n + j, columns, tile[r]);
        acc[r] = load(tile[r]);
      }
      for (std::size_t step = 0; step < k / L; ++step)
        for (std::size_t p = 0; p < pieces.size(); ++p)
          for (std::size_t r = 0; r < count; ++r)
            if (live[(p * s.m + i + r) * (k / L) + step]) {
              const double *a = &rows[p][(i + r) * k + step * L],
                           *b = &panels[p][step * L * kLanes];
              acc[r] = tensor_core_step<L>(
                  [&](int l) __attribute__((always_inline)) { return a[l]; },
                  [&](int l) __attribute__((always_inline)) { return load(b + l * kLanes); },
                  acc[r], fraction_bits);
            }
      for (std::size_t r = 0; r < count; ++r) {
        save(tile[r], acc[r]);
        std::copy_n(tile[r], columns, c + (i + r) * s.n + j);
      }
    }
  }
}

void tensor_core(ProductShape s, const std::vector<Pieces>& pieces, int products, int fraction_bits,
                 double* c) {
  if (products == 8)
    tensor_core_product<8>(s, pieces, fraction_bits, c);
  else
    tensor_core_product<16>(s, pieces, fraction_bits, c);
}

}  // namespace numgate::shadow
