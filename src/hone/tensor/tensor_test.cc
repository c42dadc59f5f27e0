#include "hone/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hone {
namespace {

constexpr DType kAll[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kBool,
                          DType::kU8,  DType::kI8,  DType::kU16, DType::kI16,  DType::kU32,
                          DType::kI32, DType::kU64, DType::kI64};

TEST(dtype, names_and_codes_round_trip) {
  for (const DType dtype : kAll) {
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
    EXPECT_EQ(dtype_from_onnx(static_cast<int>(dtype)), dtype);
    EXPECT_GT(dtype_bytes(dtype), 0);
  }
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
  EXPECT_EQ(dtype_from_onnx(8), std::nullopt);  // string
  EXPECT_TRUE(is_float(DType::kBF16));
  EXPECT_FALSE(is_float(DType::kI64));
}

TEST(tensor, starts_as_aligned_zeros) {
  for (const DType dtype : kAll) {
    const Tensor tensor(dtype, {3, 5});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 64, 0u);
    EXPECT_EQ(tensor.size(), 15);
    EXPECT_EQ(tensor.bytes(), 15 * dtype_bytes(dtype));
    for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(tensor.at(i), 0);
  }
}

TEST(tensor, elements_of_every_type) {
  for (const DType dtype : kAll) {
    Tensor tensor(dtype, {4});
    tensor.set(1, 1);
    tensor.set(3, 100);
    EXPECT_EQ(tensor.at(0), 0) << dtype_name(dtype);
    EXPECT_EQ(tensor.at(1), 1) << dtype_name(dtype);
    EXPECT_EQ(tensor.at(2), 0) << dtype_name(dtype);
    EXPECT_EQ(tensor.at(3), dtype == DType::kBool ? 1 : 100) << dtype_name(dtype);
  }
}

TEST(tensor, integers_saturate) {
  Tensor tensor(DType::kI8, {3});
  tensor.set(0, 1000);
  tensor.set(1, -1000);
  tensor.set(2, std::nan(""));
  EXPECT_EQ(tensor.as<int8_t>()[0], 127);
  EXPECT_EQ(tensor.as<int8_t>()[1], -128);
  EXPECT_EQ(tensor.as<int8_t>()[2], 0);
  Tensor wide(DType::kU64, {1});
  wide.set(0, 1e30);
  EXPECT_EQ(wide.as<uint64_t>()[0], std::numeric_limits<uint64_t>::max());
}

TEST(tensor, copies_share_and_clones_do_not) {
  Tensor tensor(DType::kF32, {2, 3});
  const Tensor copy = tensor;
  const Tensor reshaped = tensor.reshaped({3, 2});
  const Tensor clone = tensor.clone();
  tensor.set(5, 2.5);
  EXPECT_EQ(copy.at(5), 2.5);
  EXPECT_EQ(reshaped.at(5), 2.5);
  EXPECT_EQ(clone.at(5), 0);
  EXPECT_EQ(reshaped.shape(), (Shape{3, 2}));
}

TEST(tensor, scalars_and_empty_tensors) {
  EXPECT_EQ(Tensor(DType::kF32, {}).size(), 1);
  EXPECT_EQ(Tensor(DType::kF32, {3, 0}).size(), 0);
  EXPECT_EQ(Tensor().size(), 0);
  EXPECT_EQ(Tensor(DType::kF32, {3, 0}).clone().size(), 0);
  EXPECT_EQ(to_string(Shape{1, 3, 224, 224}), "[1, 3, 224, 224]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

TEST(tensor_death, outside_is_a_bug) {
  const Tensor tensor(DType::kF32, {2});
  EXPECT_DEATH((void)tensor.at(2), "inside the tensor");
  EXPECT_DEATH((void)tensor.as<double>(), "span of another element size");
  EXPECT_DEATH((void)tensor.reshaped({3}), "keeps the number");
}

}  // namespace
}  // namespace hone
