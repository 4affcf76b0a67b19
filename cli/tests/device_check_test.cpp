// The doctor's checks on the CPU backend, and on devices that are wrong.
#include "cli/device_check.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/doctor.h"
#include "reports/files.h"

namespace numgate {
namespace {

namespace tc = tensor_core;
constexpr int kTiles = 7 * tc::kGroup * 4;

TEST(DeviceCheck, TheCpuBackendIsTheModel) {
  const auto backend = kernels::make_cpu_backend();
  ASSERT_EQ(tensor_core_forms().size(), 14u);
  for (const Form& form : tensor_core_forms()) {
    const FormCheck check = check_form(form, device_of(*backend), kTiles);
    EXPECT_TRUE(check.ran) << name(form);
    EXPECT_EQ(check.outputs, kTiles * 128);
    EXPECT_TRUE(check.valid()) << name(form) << " " << check.wrong() << " " << check.models_differ;
  }
}

TEST(DeviceCheck, ADeviceOfOtherRulesIsNotValidAndIsDescribed) {
  const Form form{tc::Type::bf16, tc::Unit::mma};
  const Device ampere = [](const Form& f, std::span<tc::Tile> tiles) {
    tc::Rules rules = tc::hopper_rules(f.type, f.unit);
    rules.fraction_bits = 24, rules.products = 8;
    for (tc::Tile& tile : tiles) tc::multiply_reference(f.type, rules, tile);
    return true;
  };
  const FormCheck check = check_form(form, ampere, kTiles);
  EXPECT_FALSE(check.valid());
  EXPECT_GT(check.mismatches[static_cast<std::size_t>(tc::InputClass::near_cut)], 0);
  EXPECT_EQ(check.models_differ, 0);
  EXPECT_EQ(check.unexplained, 0);
  EXPECT_THAT(check.differences, testing::ElementsAre("keeps 24 fraction bits, the model 25",
                                                      "adds 8 products a step, the model 16"));
  EXPECT_THAT(describe(check), testing::HasSubstr("mma.sync m16n8k16 bf16"));
  EXPECT_THAT(describe(check),
              testing::HasSubstr("this device keeps 24 fraction bits, the model 25; it adds 8 "
                                 "products a step, the model 16\n"));
}

TEST(DeviceCheck, EveryWrongOutputIsCountedInItsClass) {
  const auto backend = kernels::make_cpu_backend();
  const Device broken = [&](const Form& f, std::span<tc::Tile> tiles) {
    const bool ran = device_of(*backend)(f, tiles);
    tiles[0].d[0][0] ^= 1;            // the first class
    tiles[tc::kGroup].d[7][15] ^= 2;  // the second
    tiles[tc::kGroup + 1].d[0][3] ^= 4;
    return ran;
  };
  const FormCheck check = check_form({tc::Type::s8, tc::Unit::wgmma}, broken, kTiles);
  EXPECT_EQ(check.wrong(), 3);
  EXPECT_EQ(check.mismatches[0], 1);
  EXPECT_EQ(check.mismatches[1], 2);
  EXPECT_FALSE(check.valid());
}

TEST(DeviceCheck, TheDoctorWritesARecord) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("numgate_doctor_" + std::to_string(getpid()));
  DoctorOptions options{.backend = "cpu", .out = file.string(), .tiles = 28, .inputs = 1000};
  EXPECT_EQ(doctor(options), ExitCode::pass);
  const auto record = nlohmann::json::parse(read_file(file));
  std::filesystem::remove(file);
  EXPECT_EQ(record.at("device"), "CPU backend, bits of an NVIDIA H200");
  EXPECT_EQ(record.at("command"), "numgate doctor --backend cpu");
  for (const char* field : {"driver", "toolkit", "commit"})
    EXPECT_TRUE(record.at(field).is_string()) << field;
  EXPECT_TRUE(record.at("valid").get<bool>());
  EXPECT_EQ(record.at("functions").size(), 27u);
  ASSERT_EQ(record.at("forms").size(), 14u);
  const auto& form = record.at("forms").at(9);
  EXPECT_EQ(form.at("name"), "wgmma m64n8k16 fp16");
  EXPECT_EQ(form.at("outputs"), 28 * 128);
  EXPECT_EQ(form.at("mismatches"), 0);
  EXPECT_EQ(form.at("classes").size(), 7u);
  EXPECT_EQ(form.at("classes").at("near_cut"), 0);

  options.backend = "tpu";
  EXPECT_THROW(doctor(options), UsageError);
}

TEST(DeviceCheck, AFormThatTheDeviceLacksIsNotCompared) {
  const Device none = [](const Form&, std::span<tc::Tile>) { return false; };
  const FormCheck check = check_form({tc::Type::e4m3, tc::Unit::wgmma}, none, kTiles);
  EXPECT_FALSE(check.ran);
  EXPECT_EQ(check.outputs, 0);
}

TEST(DeviceCheck, TheCpuBackendComputesTheFunctionsOfTheProcessor) {
  const auto backend = kernels::make_cpu_backend();
  const auto checks = check_functions(functions_of(*backend), 1u << 16);
  ASSERT_EQ(checks.size(), 27u);
  for (const FunctionCheck& c : checks) {
    EXPECT_EQ(c.mismatches, 0) << c.name;
    EXPECT_EQ(c.inputs, 1 << 16) << c.name;
  }
  EXPECT_EQ(checks[0].name, "exp");
  EXPECT_EQ(checks.back().name, "float_from_s8");
}

// Every argument is visited with all its exponents, NaN among them, and every code of 16 bits.
TEST(DeviceCheck, AFunctionThatIsWrongInOneBitIsNamedWithItsArgument) {
  std::vector<bool> exponents(256), codes(1u << 16);
  std::uint32_t wrong_at = 0;
  const FunctionDevice broken = [&](kernels::Function f, std::span<const std::uint32_t> x,
                                    std::span<std::uint32_t> y) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[i] = kernels::evaluate(f, x[i]);
      exponents[x[i] >> 23 & 255] = codes[x[i] & 0xffff] = true;
    }
    if (f != kernels::Function::tanh) return;
    y[77] ^= 1, y[99] ^= 1 << 31;
    wrong_at = x[77];
  };
  for (const FunctionCheck& c : check_functions(broken, 1u << 16)) {
    EXPECT_EQ(c.mismatches, c.name == "tanh" ? 2 : 0) << c.name;
    EXPECT_EQ(c.first_mismatch, c.name == "tanh" ? wrong_at : 0) << c.name;
  }
  EXPECT_EQ(std::count(exponents.begin(), exponents.end(), false), 0);
  EXPECT_EQ(std::count(codes.begin(), codes.end(), false), 0);
}

TEST(DeviceCheck, TheFunctionsAreThoseTheyAreNamedFor) {
  const auto value = [](kernels::Function f, float x) {
    return std::bit_cast<float>(kernels::evaluate(f, std::bit_cast<std::uint32_t>(x)));
  };
  EXPECT_EQ(value(kernels::Function::exp2, 3), 8);
  EXPECT_EQ(value(kernels::Function::rsqrt, 4), 0.5f);
  EXPECT_EQ(value(kernels::Function::normal_reciprocal, 4), 0.25f);
  EXPECT_EQ(value(kernels::Function::sigmoid, 0), 0.5f);
  EXPECT_EQ(kernels::evaluate(kernels::Function::bf16_from_float, 0x3f808000u), 0x3f80u);
  EXPECT_EQ(kernels::evaluate(kernels::Function::s8_from_float, 0xbf800000u), 0xffu);
  EXPECT_EQ(kernels::evaluate(kernels::Function::float_from_s8, 0xffu), 0xbf800000u);
}

}  // namespace
}  // namespace numgate
