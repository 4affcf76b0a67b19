// The vectors measured on an H200: 112 tiles an instruction. Little-endian words, one raw element
// each.
#pragma once
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/simt/tensor_core.h"

namespace numgate::tensor_core {

inline constexpr int kGoldenTiles = 112;

struct GoldenVectors {
  Type type;
  int depth;
  std::vector<std::uint32_t> words;  // A[112][16][K], B[28][K][8], C[112][16][8], D[112][16][8]

  const std::uint32_t* a(int tile) const { return words.data() + tile * 16 * depth; }
  const std::uint32_t* b(int tile) const { return a(kGoldenTiles) + tile / 4 * depth * 8; }
  const std::uint32_t* c(int tile) const { return a(kGoldenTiles) + 28 * depth * 8 + tile * 128; }
  const std::uint32_t* d(int tile) const { return c(kGoldenTiles) + tile * 128; }

  Tile tile(int index) const {
    Tile t{};
    for (int row = 0; row < 16; ++row) {
      for (int k = 0; k < depth; ++k) place(type, t.a, k, row, a(index)[row * depth + k]);
      for (int j = 0; j < 8; ++j) t.c[j][row] = c(index)[row * 8 + j];
    }
    for (int k = 0; k < depth; ++k) {
      for (int j = 0; j < 8; ++j) place(type, t.b, k, j, b(index)[k * 8 + j]);
    }
    return t;
  }
};

// `name` as in mma_tf32.
inline GoldenVectors golden_vectors(const std::string& name, Type type) {
  const int K = depth(type);
  GoldenVectors v{type, K,
                  std::vector<std::uint32_t>(kGoldenTiles * (16 * K + 2 * 128) + 28 * K * 8)};
  const auto bytes = static_cast<std::streamsize>(v.words.size() * sizeof(std::uint32_t));
  std::ifstream file(std::string(NUMGATE_GOLDEN_VECTORS) + "/" + name + ".bin", std::ios::binary);
  file.read(reinterpret_cast<char*>(v.words.data()), bytes);
  if (file.gcount() != bytes || file.peek() != EOF)
    throw std::runtime_error("golden vectors: " + name);
  return v;
}

}  // namespace numgate::tensor_core
