#include "cli/doctor.h"

#include <fmt/format.h>

#include <cstring>
#include <random>

#include "cli/machine.h"
#include "kernels/simt/tensor_core.h"

namespace numgate {
namespace {

namespace tc = tensor_core;

constexpr int kTiles = 8192;  // 1,048,576 outputs of an instruction form

// The fast model against the integer model, on random words (NaN, infinities and subnormals among
// them).
std::int64_t mismatches(tc::Type type, tc::Unit unit) {
  std::mt19937 random(1);
  std::int64_t wrong = 0;
  tc::Tile tile, again;
  for (int t = 0; t < kTiles; ++t) {
    const auto fill = [&](auto& matrix) {
      for (auto& row : matrix)
        for (auto& x : row) x = static_cast<std::uint32_t>(random());
    };
    fill(tile.a), fill(tile.b), fill(tile.c);
    again = tile;
    tc::multiply(type, unit, tile);
    tc::multiply_reference(type, unit, again);
    for (int c = 0; c < tc::kColumns; ++c)
      for (int r = 0; r < tc::kRows; ++r) wrong += tile.d[c][r] != again.d[c][r];
  }
  return wrong;
}

}  // namespace

ExitCode doctor() {
  fmt::print("numgate {} ({}), {}\n{}\n", kToolVersion, git_commit(), compiler(), hardware());
  fmt::print("backend cpu: yes, kernels run as fibers and give the bits of an H200\n");
  try {
    fmt::print("backend cuda: yes, {}\n", make_backend("cuda")->name());
  } catch (const UsageError& e) {
    fmt::print("backend cuda: no, {}\n", e.what());
  }
  std::int64_t wrong = 0;
  const auto check = [&](const char* form, tc::Type type, tc::Unit unit) {
    const std::int64_t n = mismatches(type, unit);
    wrong += n;
    fmt::print("tensor core {:<16} {} of {} outputs differ between the two models\n", form, n,
               kTiles * tc::kRows * tc::kColumns);
  };
  check("mma tf32", tc::Type::tf32, tc::Unit::mma);
  check("mma bf16", tc::Type::bf16, tc::Unit::mma);
  check("mma fp16", tc::Type::fp16, tc::Unit::mma);
  check("mma e4m3", tc::Type::e4m3, tc::Unit::mma);
  check("mma e5m2", tc::Type::e5m2, tc::Unit::mma);
  check("mma s8", tc::Type::s8, tc::Unit::mma);
  check("wgmma e4m3", tc::Type::e4m3, tc::Unit::wgmma);
  check("wgmma e5m2", tc::Type::e5m2, tc::Unit::wgmma);
  return wrong == 0 ? ExitCode::pass : ExitCode::oracle_invalid;
}

}  // namespace numgate
