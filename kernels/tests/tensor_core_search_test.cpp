// Devices that follow other rules are made of the model itself; the search must name those rules.
#include "kernels/simt/tensor_core_search.h"

#include <gmock/gmock.h>

#include <sstream>

#include "kernels/driver_version.h"
#include "kernels/simt/tensor_core_inputs.h"

namespace numgate::tensor_core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Tile> device(Type type, const Rules& rules) {
  std::vector<Tile> tiles = input_tiles(type, 7 * kGroup * 12);
  for (Tile& tile : tiles) multiply_reference(type, rules, tile);
  return tiles;
}

std::vector<std::string> named(Type type, Unit unit, const Rules& rules) {
  const Rules model = hopper_rules(type, unit);
  const std::vector<Tile> tiles = device(type, rules);
  const Explanation found = explain(type, model, tiles);
  EXPECT_EQ(found.mismatches, 0);
  return differences(found.rules, model);
}

// Ampere, as published: 24 fraction bits, half as many products a step, a floor of 2^-132.
Rules ampere(Type type) {
  Rules rules = hopper_rules(type, Unit::mma);
  rules.fraction_bits = 24;
  rules.products = depth(type) / 2;
  rules.exponent_floor = -132;
  return rules;
}

TEST(TensorCoreSearch, NamesAmpere) {
  EXPECT_THAT(
      named(Type::bf16, Unit::mma, ampere(Type::bf16)),
      ElementsAre("keeps 24 fraction bits, the model 25", "adds 8 products a step, the model 16",
                  "ends its exponents at 2^-132, the model at 2^-133"));
  EXPECT_THAT(
      named(Type::tf32, Unit::mma, ampere(Type::tf32)),
      ElementsAre("keeps 24 fraction bits, the model 25", "adds 4 products a step, the model 8",
                  "ends its exponents at 2^-132, the model at 2^-133"));
  // Products of fp16 are never as small as that floor.
  EXPECT_THAT(
      named(Type::fp16, Unit::mma, ampere(Type::fp16)),
      ElementsAre("keeps 24 fraction bits, the model 25", "adds 8 products a step, the model 16"));
}

TEST(TensorCoreSearch, NamesFp8ThatHasItsOwnPath) {
  Rules rules = hopper_rules(Type::e5m2, Unit::wgmma);
  rules.products = 16;  // Ada's mma.sync
  EXPECT_THAT(named(Type::e5m2, Unit::mma, rules),
              ElementsAre("keeps 13 fraction bits, the model 25",
                          "takes products in sequence, the model k % 4 < 2 first",
                          "adds C with the first products, the model last, by an fp32 addition",
                          "stores 13 fraction bits, the model 23"));
  rules.products = 32;
  rules.fraction_bits = 25, rules.stored_bits = 23;  // Blackwell
  EXPECT_THAT(
      named(Type::e5m2, Unit::wgmma, rules),
      ElementsAre("keeps 25 fraction bits, the model 13", "stores 23 fraction bits, the model 13"));
}

TEST(TensorCoreSearch, NamesRoundingAndCut) {
  Rules rules = hopper_rules(Type::bf16, Unit::mma);
  rules.cut = Rules::Cut::floor;
  EXPECT_THAT(named(Type::bf16, Unit::mma, rules),
              ElementsAre("cuts terms toward minus infinity, the model toward zero"));
  rules.cut = Rules::Cut::toward_zero;
  rules.rounding = Rules::Rounding::nearest_even;
  EXPECT_THAT(named(Type::bf16, Unit::mma, rules),
              ElementsAre("rounds sums to nearest even, the model toward zero"));
}

TEST(TensorCoreSearch, TheModelNeedsNoExplanation) {
  for (const Unit unit : {Unit::mma, Unit::wgmma})
    EXPECT_THAT(named(Type::e4m3, unit, hopper_rules(Type::e4m3, unit)), IsEmpty());
}

TEST(TensorCoreSearch, SaysWhatNoRulesExplain) {
  const Rules model = hopper_rules(Type::fp16, Unit::mma);
  std::vector<Tile> tiles = device(Type::fp16, model);
  tiles[3].d[2][1] ^= 1;
  tiles[40].d[0][0] ^= 0x400;
  const Explanation found = explain(Type::fp16, model, tiles);
  EXPECT_EQ(found.mismatches, 2);
  EXPECT_EQ(found.rules, model);
}

TEST(DriverVersion, IsReadFromBothKindsOfModule) {
  const auto version = [](const char* text) {
    std::istringstream in(text);
    return kernels::kernel_module_version(in);
  };
  EXPECT_EQ(version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n"
                    "GCC version:  gcc version 12.2.0\n"),
            "535.104.05");
  EXPECT_EQ(version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release "
                    "Build  (root@host)\n"),
            "580.159.04");
  EXPECT_EQ(version(""), "");
}

}  // namespace
}  // namespace numgate::tensor_core
