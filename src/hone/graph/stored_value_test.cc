#include "hone/graph/stored_value.h"

#include <gtest/gtest.h>

#include <numeric>

namespace hone::graph {
namespace {

Value value_of(const Shape& shape, std::vector<int> order, Shape extent, Shape offset) {
  Value value{.dtype = DType::kI64, .shape = shape};
  value.storage.buffer = 0;
  value.storage.order = std::move(order);
  value.storage.extent = std::move(extent);
  value.storage.step.assign(offset.size(), 1);
  value.storage.offset = std::move(offset);
  return value;
}

std::vector<int64_t> elements(const Value& value) {
  std::vector<int64_t> buffer(static_cast<size_t>(num_elements(value.storage.extent)));
  std::iota(buffer.begin(), buffer.end(), 0);
  const Tensor tensor = stored_value(value, buffer.data());
  EXPECT_EQ(tensor.shape(), value.shape);
  return {tensor.as<int64_t>().begin(), tensor.as<int64_t>().end()};
}

TEST(stored_value, follows_the_order_of_the_dimensions) {
  // Value [c, x] = [2, 3], in memory x by c.
  EXPECT_EQ(elements(value_of({2, 3}, {1, 0}, {3, 2}, {0, 0})),
            (std::vector<int64_t>{0, 2, 4, 1, 3, 5}));
}

TEST(stored_value, cuts_out_its_window) {
  EXPECT_EQ(elements(value_of({2, 2}, {0, 1}, {4, 5}, {1, 2})),
            (std::vector<int64_t>{7, 8, 12, 13}));
}

TEST(stored_value, takes_every_step_th_element) {
  Value value = value_of({2, 2}, {0, 1}, {4, 5}, {1, 0});
  value.storage.step = {2, 3};
  EXPECT_EQ(elements(value), (std::vector<int64_t>{5, 8, 15, 18}));
}

TEST(stored_value, may_be_a_scalar_or_empty) {
  EXPECT_EQ(elements(value_of({}, {}, {}, {})), std::vector<int64_t>{0});
  EXPECT_TRUE(elements(value_of({2, 0}, {0, 1}, {2, 0}, {0, 0})).empty());
}

}  // namespace
}  // namespace hone::graph
