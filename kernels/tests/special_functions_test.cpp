// The model of the special function unit against what an H200 gave for every significand.
#include "kernels/special_functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/elementary.h"

namespace numgate::elementary {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::uint32_t kSignificands = 1u << 23, kSegment = 1u << 17;

std::uint32_t word(float x) { return std::bit_cast<std::uint32_t>(x); }

const nlohmann::json& golden() {
  static const auto json = nlohmann::json::parse(std::ifstream(NUMGATE_GOLDEN_FUNCTIONS));
  return json;
}

// FNV-1a over words.
template <class Result>
std::string digest(std::uint32_t first, Result result) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::uint32_t k = first; k < first + kSegment; ++k)
    hash = (hash ^ word(result(k))) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

template <class Result>
void expect_the_hardware(const char* name, std::size_t segments, Result result) {
  const nlohmann::json& digests = golden().at(name);
  ASSERT_EQ(digests.size(), segments);
  for (std::size_t s = 0; s < segments; ++s)
    EXPECT_EQ(digest(static_cast<std::uint32_t>(s) * kSegment, result), digests[s]) << s;
}

float grid(std::uint32_t k) { return static_cast<float>(k) * 0x1p-23f; }

TEST(SpecialFunctions, Ex2EqualsTheHardware) {
  expect_the_hardware("ex2_approx", 64, [](std::uint32_t k) { return ex2_approx(grid(k)); });
}
TEST(SpecialFunctions, RcpEqualsTheHardware) {
  expect_the_hardware("rcp_approx", 64, [](std::uint32_t k) { return rcp_approx(1 + grid(k)); });
}
TEST(SpecialFunctions, RsqrtEqualsTheHardware) {
  expect_the_hardware("rsqrt_approx", 128, [](std::uint32_t k) {
    return rsqrt_approx((1.0f + static_cast<float>(k >> 23)) * (1 + grid(k % kSignificands)));
  });
}

// x 2^23 as an integer.
std::int64_t rounded(const std::string& rule, double x) {
  const double scaled = x * 0x1p23;
  if (rule == "floor") return static_cast<std::int64_t>(std::floor(scaled));
  if (rule == "truncate") return static_cast<std::int64_t>(std::trunc(scaled));
  if (rule == "nearest") return static_cast<std::int64_t>(std::rint(scaled));
  EXPECT_EQ(rule, "complement");
  const auto cut = static_cast<std::int64_t>(std::trunc(std::fabs(scaled)));
  return x < 0 ? ~cut : cut;
}

// The GPU told, for simple rules of how an argument becomes a multiple of 2^-23, how many floats of
// an exponent follow another: none is right for all, and the counts say what is.
TEST(SpecialFunctions, Ex2CutsItsArgumentAsTheHardwareDoes) {
  std::vector<std::uint32_t> unit(kSignificands);  // of [0, 1)
  for (std::uint32_t k = 0; k < kSignificands; ++k) unit[k] = word(ex2_approx(grid(k)));
  for (const auto& row : golden().at("ex2_argument")) {
    const bool negative = row.at("negative");
    const int exponent = row.at("exponent");
    const std::string rule = row.at("rule");
    const std::uint32_t first =
        (negative ? 0x80000000 : 0) | static_cast<std::uint32_t>(127 + exponent) << 23;
    std::int64_t mismatches = 0;
    for (std::uint32_t fraction = 0; fraction < kSignificands; ++fraction) {
      const auto x = std::bit_cast<float>(first | fraction);
      const std::int64_t k = rounded(rule, static_cast<double>(x)), whole = k >> 23;
      const std::int64_t y = (whole << 23) + unit[static_cast<std::size_t>(k & 0x7fffff)];
      mismatches += word(ex2_approx(x)) != (y < (1 << 23) ? 0 : static_cast<std::uint32_t>(y));
    }
    EXPECT_EQ(mismatches, row.at("mismatches").get<std::int64_t>())
        << rule << ", exponent " << exponent << (negative ? ", negative" : "");
  }
}

TEST(SpecialFunctions, EndsOfTheRange) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), subnormal = 0x1p-127f;
  for (const float y : {ex2_approx(nan), rcp_approx(-nan), rsqrt_approx(nan), rsqrt_approx(-1),
                        rsqrt_approx(-kInf)})
    EXPECT_EQ(word(y), 0x7fffffffu);
  EXPECT_EQ(ex2_approx(kInf), kInf);
  EXPECT_EQ(word(ex2_approx(-kInf)), 0u);
  EXPECT_EQ(ex2_approx(128), kInf);
  EXPECT_EQ(ex2_approx(127), 0x1p127f);
  EXPECT_EQ(ex2_approx(-126), 0x1p-126f);
  EXPECT_EQ(word(ex2_approx(-126.5f)), 0u);
  EXPECT_EQ(ex2_approx(-subnormal), 1);
  EXPECT_EQ(ex2_approx(-0x1p-24f), 1);
  EXPECT_EQ(word(rcp_approx(-0.0f)), word(-kInf));
  EXPECT_EQ(word(rcp_approx(-subnormal)), word(-kInf));
  EXPECT_EQ(word(rcp_approx(-kInf)), word(-0.0f));
  EXPECT_EQ(rcp_approx(0x1p126f), 0x1p-126f);
  EXPECT_EQ(word(rcp_approx(-0x1.8p126f)), word(-0.0f));
  EXPECT_EQ(rcp_approx(0x1p-126f), 0x1p126f);
  EXPECT_EQ(word(rsqrt_approx(-subnormal)), word(-kInf));
  EXPECT_EQ(word(rsqrt_approx(kInf)), 0u);
  EXPECT_EQ(rsqrt_approx(0x1p-126f), 0x1p63f);
  EXPECT_EQ(rsqrt_approx(0x1p126f), 0x1p-63f);
}

// What the kernels do on the GPU in place of a division.
TEST(SpecialFunctions, RefinedReciprocalIsTheDivision) {
  for (const float scale : {0x1p-126f, 1.0f, 0x1p125f}) {
    std::uint32_t wrong = 0;
    for (std::uint32_t k = 0; k < kSignificands; ++k) {
      const float d = (1 + grid(k)) * scale;
      wrong += word(refined_reciprocal(d)) != word(1 / d);
    }
    EXPECT_EQ(wrong, 0u) << scale;
  }
}

}  // namespace
}  // namespace numgate::elementary
