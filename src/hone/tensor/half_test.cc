#include "hone/tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "hone/base/rng.h"

namespace hone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(half, all_bit_patterns_round_trip) {
  for (int i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const double f16 = f16_to_double(bits);
    const double bf16 = bf16_to_double(bits);
    if (std::isnan(f16)) {
      EXPECT_TRUE(std::isnan(f16_to_double(double_to_f16(f16))));
    } else {
      ASSERT_EQ(double_to_f16(f16), bits) << f16;
    }
    if (std::isnan(bf16)) {
      EXPECT_TRUE(std::isnan(bf16_to_double(double_to_bf16(bf16))));
    } else {
      ASSERT_EQ(double_to_bf16(bf16), bits) << bf16;
    }
  }
}

TEST(half, bf16_is_the_upper_half_of_a_float) {
  for (int i = 0; i < 0x10000; ++i) {
    const uint32_t wide = static_cast<uint32_t>(i) << 16;
    float expected;
    std::memcpy(&expected, &wide, 4);
    if (std::isnan(expected)) continue;
    ASSERT_EQ(bf16_to_double(static_cast<uint16_t>(i)), expected);
  }
}

TEST(half, known_values) {
  EXPECT_EQ(double_to_f16(1.0), 0x3c00);
  EXPECT_EQ(double_to_f16(-2.0), 0xc000);
  EXPECT_EQ(double_to_f16(65504.0), 0x7bff);
  EXPECT_EQ(double_to_f16(0x1p-24), 0x0001);
  EXPECT_EQ(double_to_f16(-0.0), 0x8000);
  EXPECT_EQ(double_to_f16(kInfinity), 0x7c00);
  EXPECT_EQ(double_to_bf16(1.0), 0x3f80);
  EXPECT_EQ(double_to_bf16(-kInfinity), 0xff80);
}

TEST(half, ties_go_to_even_and_overflow_to_infinity) {
  EXPECT_EQ(double_to_f16(1 + 0x1p-11), 0x3c00);
  EXPECT_EQ(double_to_f16(1 + 0x3p-11), 0x3c02);
  EXPECT_EQ(double_to_f16(1 + 0x1p-11 + 0x1p-40), 0x3c01);  // by way of float this would be a tie
  EXPECT_EQ(double_to_f16(65519.99), 0x7bff);
  EXPECT_EQ(double_to_f16(65520.0), 0x7c00);
  EXPECT_EQ(double_to_f16(0x1p-25), 0x0000);
  EXPECT_EQ(double_to_f16(0x1.001p-25), 0x0001);
  EXPECT_EQ(double_to_f16(1e300), 0x7c00);
  EXPECT_EQ(double_to_bf16(1 + 0x1p-8), 0x3f80);
  EXPECT_EQ(double_to_bf16(1 + 0x3p-8), 0x3f82);
}

TEST(half, rounding_picks_a_nearest_value) {
  Rng rng(1);
  for (int i = 0; i < 20'000; ++i) {
    const double value = std::ldexp(rng.uniform() * 2 - 1, static_cast<int>(rng.between(-28, 15)));
    const uint16_t bits = double_to_f16(value);
    const double error = std::fabs(f16_to_double(bits) - value);
    for (const int step : {-1, 1}) {
      const double neighbour = f16_to_double(static_cast<uint16_t>(bits + step));
      if (!std::isfinite(neighbour)) continue;
      ASSERT_LE(error, std::fabs(neighbour - value)) << value;
    }
  }
}

}  // namespace
}  // namespace hone
