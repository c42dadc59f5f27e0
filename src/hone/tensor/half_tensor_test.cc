#include "hone/tensor/half_tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "hone/base/rng.h"
#include "hone/tensor/half.h"

namespace hone {
namespace {

TEST(half_tensor, every_number_of_a_half_type_survives_float32) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    Tensor all(dtype, {1 << 16});
    for (int i = 0; i < 1 << 16; ++i)
      all.as<uint16_t>()[static_cast<size_t>(i)] = static_cast<uint16_t>(i);
    const Tensor wide = widened(all);
    const auto back = narrowed(wide, dtype, true);
    ASSERT_TRUE(back.has_value());
    for (int64_t i = 0; i < all.size(); ++i) {
      if (std::isnan(all.at(i))) {
        EXPECT_TRUE(std::isnan(wide.at(i)) && std::isnan(back->at(i))) << i;
      } else {
        ASSERT_EQ(wide.at(i), all.at(i)) << i;
        ASSERT_EQ(back->as<uint16_t>()[static_cast<size_t>(i)], i);
      }
    }
  }
}

TEST(half_tensor, numbers_of_float32_are_rounded_as_each_by_itself) {
  Rng rng(7);
  Tensor floats(DType::kF32, {20000});
  for (float& x : floats.as<float>()) {
    // All exponents around the borders of f16, and last bits near the middle of two numbers.
    const auto exponent = static_cast<uint32_t>(127 - 28 + rng.below(48));
    const auto fraction = static_cast<uint32_t>(rng.below(1 << 10)) << 13;
    const auto rest = static_cast<uint32_t>(0x0FFF + rng.below(3));
    const auto sign = static_cast<uint32_t>(rng.below(2)) << 31;
    x = std::bit_cast<float>(sign | exponent << 23 | fraction | rest);
  }
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const auto half = narrowed(floats, dtype, false);
    ASSERT_TRUE(half.has_value());
    for (int64_t i = 0; i < floats.size(); ++i) {
      const auto expected =
          dtype == DType::kF16 ? double_to_f16(floats.at(i)) : double_to_bf16(floats.at(i));
      ASSERT_EQ(half->as<uint16_t>()[static_cast<size_t>(i)], expected) << floats.at(i);
    }
    EXPECT_FALSE(narrowed(floats, dtype, true).has_value());
  }
}

}  // namespace
}  // namespace hone
