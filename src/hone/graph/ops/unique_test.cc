// Unique against its definition: random rows of several types with equal ones, zeros of both signs
// and NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

struct Groups {
  std::vector<int64_t> first, which, times;
};

Groups groups_of(const Tensor& rows, bool sorted) {
  const int64_t width = rows.shape()[1];
  using Key =
      std::vector<std::pair<bool, double>>;  // of each element whether it is NaN, or its value
  std::map<Key, Groups> found;
  std::vector<Key> keys;
  for (int64_t i = 0; i < rows.shape()[0]; ++i) {
    Key& key = keys.emplace_back();
    for (int64_t m = 0; m < width; ++m) {
      const double x = rows.at(i * width + m);
      key.emplace_back(std::isnan(x), std::isnan(x) ? 0 : x);
    }
    Groups& group = found[key];
    if (group.first.empty()) group.first = {i};
    group.which.push_back(i);
  }
  std::vector<const Groups*> order;
  for (const auto& entry : found) order.push_back(&entry.second);
  if (!sorted) {
    std::sort(order.begin(), order.end(),
              [](const Groups* a, const Groups* b) { return a->first < b->first; });
  }
  Groups all;
  all.which.resize(keys.size());
  for (const Groups* group : order) {
    for (const int64_t row : group->which)
      all.which[static_cast<size_t>(row)] = std::ssize(all.first);
    all.first.push_back(group->first[0]);
    all.times.push_back(std::ssize(group->which));
  }
  return all;
}

void expect_list(const Tensor& found, const std::vector<int64_t>& expected) {
  ASSERT_EQ(found.size(), std::ssize(expected));
  for (int64_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found.at(i), static_cast<double>(expected[static_cast<size_t>(i)])) << i;
}

double random_element(DType dtype, Rng& rng) {
  if (dtype == DType::kBool) return static_cast<double>(rng.below(2));
  if (!is_float(dtype)) return static_cast<double>(rng.between(dtype == DType::kU8 ? 0 : -2, 3));
  const std::vector<double> values = {NAN, 0.0, -0.0, HUGE_VAL, -HUGE_VAL, 1.5, -1.5, 2};
  return values[static_cast<size_t>(rng.below(std::ssize(values)))];
}

TEST(unique, is_what_its_definition_says) {
  Rng rng(3);
  for (const DType dtype :
       {DType::kF32, DType::kF64, DType::kF16, DType::kI64, DType::kI8, DType::kU8, DType::kBool}) {
    for (const Shape& shape : {Shape{1, 1}, {7, 2}, {24, 1}, {90, 1}, {60, 3}}) {
      for (const bool sorted : {true, false}) {
        SCOPED_TRACE(fmt::format("{} {} {}", dtype_name(dtype), to_string(shape), sorted));
        TestModel model;
        model.input("x", shape, dtype)
            .node("Unique", {"x"}, {"y", "first", "which", "times"},
                  {{"axis", int64_t{0}}, {"sorted", int64_t{sorted}}});
        for (const char* name : {"y", "first", "which", "times"}) model.output(name);
        Tensor x(dtype, shape);
        for (int64_t i = 0; i < x.size(); ++i) x.set(i, random_element(dtype, rng));
        const Groups expected = groups_of(x, sorted);
        const std::vector<Tensor> found = run_optimized(model.graph(), {x});
        expect_list(found[1], expected.first);
        expect_list(found[2], expected.which);
        expect_list(found[3], expected.times);
        ASSERT_EQ(found[0].shape(), (Shape{std::ssize(expected.first), shape[1]}));
        for (int64_t i = 0; i < found[0].size(); ++i) {
          const int64_t row = expected.first[static_cast<size_t>(i / shape[1])];
          const double want = x.at(row * shape[1] + i % shape[1]), got = found[0].at(i);
          EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hone::graph
