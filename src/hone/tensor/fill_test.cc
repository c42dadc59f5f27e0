#include "hone/tensor/fill.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(fill_with, copies_all_bits_to_any_number_of_elements) {
  for (const int64_t size : {0, 1, 2, 3, 7, 8, 1000}) {
    Tensor tensor(DType::kI64, {size}), element(DType::kI64, {1});
    element.as<int64_t>()[0] = (int64_t{1} << 62) + 1;  // not a double
    fill_with(tensor, element);
    for (const int64_t found : tensor.as<int64_t>()) EXPECT_EQ(found, (int64_t{1} << 62) + 1);
  }
  Tensor bytes(DType::kU8, {3, 5}), element(DType::kU8, {});
  element.set(0, 200);
  fill_with(bytes, element);
  for (int64_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes.at(i), 200);
}

}  // namespace
}  // namespace hone
