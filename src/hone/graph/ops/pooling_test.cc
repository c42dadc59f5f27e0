#include <gtest/gtest.h>

#include <cmath>

#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

struct Case {
  const char* name;
  const char* type;
  int64_t h, w, k, stride, pad;
  bool ceil_mode, include_pad, relu;
};

Tensor direct(const Case& c, const Tensor& x) {
  const int64_t channels = x.shape()[1];
  const auto extent = [&](int64_t in) {
    const int64_t room = in + 2 * c.pad - c.k;
    int64_t out = room / c.stride + 1;
    if (c.ceil_mode && room % c.stride != 0 && out * c.stride < in + c.pad) ++out;
    return out;
  };
  Tensor y(DType::kF32, {1, channels, extent(c.h), extent(c.w)});
  int64_t flat = 0;
  for (int64_t ch = 0; ch < channels; ++ch)
    for (int64_t i = 0; i < y.shape()[2]; ++i)
      for (int64_t j = 0; j < y.shape()[3]; ++j) {
        double sum = 0, largest = -HUGE_VAL;
        int64_t real = 0, padded = 0;
        for (int64_t p = 0; p < c.k; ++p)
          for (int64_t q = 0; q < c.k; ++q) {
            const int64_t r = i * c.stride + p - c.pad, s = j * c.stride + q - c.pad;
            if (r >= c.h + c.pad || s >= c.w + c.pad) continue;
            ++padded;
            if (r < 0 || r >= c.h || s < 0 || s >= c.w) continue;
            ++real;
            double value = x.at((ch * c.h + r) * c.w + s);
            if (c.relu) value = std::max(0.0, value);
            sum += value;
            largest = std::max(largest, value);
          }
        const bool max = std::string(c.type) == "MaxPool";
        y.set(flat++, max ? largest : sum / static_cast<double>(c.include_pad ? padded : real));
      }
  return y;
}

class Pooling : public testing::TestWithParam<Case> {};

TEST_P(Pooling, equals_its_definition) {
  const Case& c = GetParam();
  Rng rng(21);
  const Tensor x = random_tensor({1, 3, c.h, c.w}, rng);
  TestModel model;
  model.input("x", x.shape());
  if (c.relu) model.node("Relu", {"x"}, {"r"});
  AttributeList attributes = {{"kernel_shape", Shape{c.k, c.k}},
                              {"strides", Shape{c.stride, c.stride}},
                              {"pads", Shape{c.pad, c.pad, c.pad, c.pad}},
                              {"ceil_mode", int64_t{c.ceil_mode}}};
  if (c.include_pad) attributes.push_back({"count_include_pad", int64_t{1}});
  const Graph graph =
      model.node(c.type, {c.relu ? "r" : "x"}, {"y"}, attributes).output("y").graph();
  const Tensor expected = direct(c, x);
  EXPECT_LT(relative_error(run_optimized(graph, {x})[0], expected), 1e-5);
  EXPECT_LT(relative_error(run_plainly(graph, {x})[0], expected), 1e-5);
}

const Case kCases[] = {
    {"max", "MaxPool", 6, 7, 2, 2, 0, false, false, false},
    {"max_padded", "MaxPool", 7, 7, 3, 2, 1, false, false, false},
    {"max_padded_after_relu", "MaxPool", 7, 7, 3, 2, 1, false, false, true},
    {"max_ceil", "MaxPool", 6, 8, 3, 2, 0, true, false, false},
    {"max_ceil_padded", "MaxPool", 6, 6, 3, 2, 1, true, false, false},
    {"average", "AveragePool", 6, 7, 2, 2, 0, false, false, false},
    {"average_padded", "AveragePool", 7, 6, 3, 1, 1, false, false, false},
    {"average_with_padding", "AveragePool", 7, 6, 3, 1, 1, false, true, false},
    {"average_ceil", "AveragePool", 6, 8, 3, 2, 0, true, false, false},
    {"average_ceil_with_padding", "AveragePool", 6, 6, 3, 2, 1, true, true, false},
};
INSTANTIATE_TEST_SUITE_P(pool, Pooling, testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(pool, global_pooling_reduces_all_positions) {
  const Tensor x = floats({1, 2, 1, 3}, {1, 5, 3, -4, -2, -9});
  for (const bool max : {true, false}) {
    TestModel model;
    model.input("x", x.shape())
        .node(max ? "GlobalMaxPool" : "GlobalAveragePool", {"x"}, {"y"})
        .output("y");
    const Tensor expected = max ? floats({1, 2, 1, 1}, {5, -2}) : floats({1, 2, 1, 1}, {3, -5});
    EXPECT_LT(relative_error(run_optimized(model.graph(), {x})[0], expected), 1e-6);
  }
}

TEST(pool, a_window_in_the_padding_alone_is_an_error) {
  TestModel model;
  model.input("x", {1, 1, 4, 4});
  model.node("MaxPool", {"x"}, {"y"}, {{"kernel_shape", Shape{2, 2}}, {"pads", Shape{2, 2, 2, 2}}})
      .output("y");
  EXPECT_EQ(model.import().status().code(), Code::kInvalid);
}

// A border of zeros would be greater than what wraps or is clipped below zero.
TEST(pooling, of_what_may_be_negative_sees_no_zeros_around) {
  const auto pooled = [](TestModel& model, const Tensor& x) {
    model.node("MaxPool", {"a"}, {"y"},
               {{"kernel_shape", Shape{3, 3}}, {"pads", Shape{1, 1, 1, 1}}});
    return run_optimized(model.output("y").graph(), {x})[0];
  };
  Tensor bytes(DType::kI8, {1, 1, 4, 4}), doubled(DType::kI8, {1, 1, 4, 4});
  for (int64_t i = 0; i < bytes.size(); ++i) bytes.set(i, 100), doubled.set(i, -56);
  TestModel sum;
  sum.input("x", {1, 1, 4, 4}, DType::kI8).node("Relu", {"x"}, {"r"});
  sum.node("Add", {"r", "r"}, {"a"});
  EXPECT_EQ(relative_error(pooled(sum, bytes), doubled), 0);
  TestModel clipped;
  clipped.input("x", {1, 1, 2, 2}).constant("l", floats({}, {0})).constant("h", floats({}, {-2}));
  clipped.node("Clip", {"x", "l", "h"}, {"a"});
  EXPECT_EQ(relative_error(pooled(clipped, floats({1, 1, 2, 2}, {-5, 0, 1, 9})),
                           floats({1, 1, 2, 2}, {-2, -2, -2, -2})),
            0);
}

}  // namespace
}  // namespace hone::graph
