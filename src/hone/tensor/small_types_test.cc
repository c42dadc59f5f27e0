#include "hone/tensor/small_types.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/tensor/dtype.h"
#include "hone/tensor/npy.h"

namespace hone {
namespace {

constexpr DType kAll[] = {kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kU4,
                          kI4,       kF4E2M1,     kF8E8M0, kU2,         kI2};

int codes_of(DType dtype) {
  return elements_per_byte(dtype) == 1 ? 256 : 1 << (8 / elements_per_byte(dtype));
}

TEST(small_types, all_codes_round_trip) {
  for (const DType dtype : kAll) {
    for (int code = 0; code < codes_of(dtype); ++code) {
      const double value = small_to_double(dtype, static_cast<uint8_t>(code));
      const double again = small_to_double(dtype, double_to_small(dtype, value));
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(again)) << dtype_name(dtype) << code;
      else if (std::isinf(value))
        EXPECT_EQ(again, std::copysign(57344, value));  // what is out of range saturates
      else
        EXPECT_TRUE(again == value && std::signbit(again) == std::signbit(value))
            << dtype_name(dtype) << " " << code << ": " << value << " " << again;
    }
  }
}

TEST(small_types, known_values) {
  EXPECT_EQ(small_to_double(kF8E4M3FN, 0x7E), 448);
  EXPECT_EQ(small_to_double(kF8E4M3FN, 0x01), 0x1p-9);
  EXPECT_EQ(small_to_double(kF8E4M3FNUZ, 0x7F), 240);
  EXPECT_EQ(small_to_double(kF8E5M2, 0x7B), 57344);
  EXPECT_EQ(small_to_double(kF8E5M2, 0xFC), -HUGE_VAL);
  EXPECT_EQ(small_to_double(kF8E5M2FNUZ, 0x7F), 57344);
  EXPECT_TRUE(std::isnan(small_to_double(kF8E5M2FNUZ, 0x80)));
  EXPECT_TRUE(std::isnan(small_to_double(kF8E4M3FN, 0xFF)));
  EXPECT_EQ(small_to_double(kF4E2M1, 0x07), 6);
  EXPECT_EQ(small_to_double(kF4E2M1, 0x09), -0.5);
  EXPECT_EQ(small_to_double(kF8E8M0, 0x80), 2);
  EXPECT_EQ(small_to_double(kI4, 0x0F), -1);
  EXPECT_EQ(small_to_double(kU4, 0x0F), 15);
  EXPECT_EQ(small_to_double(kI2, 0x02), -2);
}

TEST(small_types, rounds_to_nearest_even_and_saturates) {
  EXPECT_EQ(double_to_small(kF8E4M3FN, 17), 0x58);     // 16, not 18
  EXPECT_EQ(double_to_small(kF8E4M3FN, 19), 0x5A);     // 20, not 18
  EXPECT_EQ(double_to_small(kF8E4M3FN, 0x1p-10), 0);   // a tie with 0
  EXPECT_EQ(double_to_small(kF8E4M3FN, 0x1.8p-9), 2);  // a tie of 1 and 2 units
  EXPECT_EQ(double_to_small(kF8E4M3FN, -1e9), 0xFE);
  EXPECT_EQ(double_to_small(kF8E5M2, HUGE_VAL), 0x7B);
  EXPECT_EQ(double_to_small(kF8E5M2FNUZ, -1e-9), 0);  // no negative zero
  EXPECT_EQ(double_to_small(kF4E2M1, 2.5), 0x04);
  EXPECT_EQ(double_to_small(kI4, -9.9), 0xF8);
  EXPECT_EQ(double_to_small(kU2, 7), 3);
}

TEST(small_types, pack_as_onnx_does) {
  Tensor tensor(kI4, {3});
  tensor.set(0, 1), tensor.set(1, -2), tensor.set(2, 7);
  EXPECT_EQ(packed(tensor), std::string("\xE1\x07", 2));
  const Tensor again = unpacked(kI4, {3}, packed(tensor));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(again.at(i), tensor.at(i));
  Tensor pairs(kU2, {5});
  for (int i = 0; i < 5; ++i) pairs.set(i, i % 4);
  EXPECT_EQ(packed(pairs), std::string("\xE4\x00", 2));
  EXPECT_EQ(unpacked(kU2, {5}, packed(pairs)).at(3), 3);
}

TEST(small_types, are_bytes_in_npy_files) {
  Tensor tensor(kI4, {2});
  tensor.set(0, -1), tensor.set(1, 3);
  const std::string bytes = format_npy(tensor);
  EXPECT_NE(bytes.find("'<V1'"), std::string::npos);
  EXPECT_EQ(bytes.substr(bytes.size() - 2), std::string("\x0F\x03"));
  const Result<Tensor> read = parse_npy(bytes);
  ASSERT_TRUE(read.ok());
  const auto again = as_type(*read, kI4);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->at(0), -1);
  EXPECT_FALSE(as_type(Tensor(DType::kF32, {2}), kI4).has_value());
  EXPECT_FALSE(as_type(*read, DType::kF32).has_value());
}

TEST(small_types, have_names) {
  EXPECT_EQ(onnx_type_text(17), "float8e4m3fn (17)");
  EXPECT_EQ(onnx_type_text(99), "99, which ONNX does not have");
  EXPECT_EQ(dtype_name(kI4), "i4");
  EXPECT_EQ(dtype_bytes(kF8E5M2), 1);
  EXPECT_EQ(dtype_from_onnx(22), kI4);
  EXPECT_FALSE(dtype_from_onnx(8).has_value());
  EXPECT_FALSE(dtype_from_onnx(22 + 256).has_value());
  EXPECT_FALSE(parse_dtype("i4").has_value());  // i4 is the name of a variable in programs
}

}  // namespace
}  // namespace hone
