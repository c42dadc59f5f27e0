#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "hone/graph/passes/pass_testing.h"
#include "hone/graph/tasks.h"

namespace hone::graph {
namespace {

struct Case {
  const char* name;
  Shape data;     // N, channels, spatial dimensions
  Shape weights;  // channels, results per group, kernel
  int64_t group;
  Shape strides, dilations, pads, output_padding;
  bool bias, constant_weights = true;
};

// Calls f(point) for all points of a shape.
void for_each_point(const Shape& shape, const std::function<void(const Shape&)>& f) {
  Shape point(shape.size(), 0);
  for (bool more = num_elements(shape) > 0; more;) {
    f(point);
    more = false;
    for (size_t d = shape.size(); d-- > 0 && !more;) {
      more = ++point[d] < shape[d];
      if (!more) point[d] = 0;
    }
  }
}

int64_t flat_index(const Shape& shape, const Shape& point) {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + point[d];
  return flat;
}

// The definition: every element of the data adds its multiple of the weights to the result.
Tensor scattered(const Case& c, const Tensor& x, const Tensor& w, const Tensor* b) {
  const size_t rank = c.data.size() - 2;
  const int64_t in_group = c.data[1] / c.group, out_group = c.weights[1];
  Shape shape = {c.data[0], c.group * out_group};
  for (size_t d = 0; d < rank; ++d) {
    shape.push_back((c.data[d + 2] - 1) * c.strides[d] + (c.weights[d + 2] - 1) * c.dilations[d] +
                    1 + c.output_padding[d] - c.pads[d] - c.pads[rank + d]);
  }
  Tensor y(DType::kF32, shape);
  for_each_point(shape, [&](const Shape& at) {
    y.set(flat_index(shape, at), b != nullptr ? b->at(at[1]) : 0);
  });
  for_each_point(c.data, [&](const Shape& from) {
    Shape kernel = c.weights;
    kernel[0] = 1;
    for_each_point(kernel, [&](const Shape& tap) {
      Shape to = {from[0], from[1] / in_group * out_group + tap[1]}, weight = tap;
      weight[0] = from[1];
      bool inside = true;
      for (size_t d = 0; d < rank; ++d) {
        to.push_back(from[d + 2] * c.strides[d] + tap[d + 2] * c.dilations[d] - c.pads[d]);
        inside = inside && to.back() >= 0 && to.back() < shape[d + 2];
      }
      if (!inside) return;
      const int64_t i = flat_index(shape, to);
      y.set(i, y.at(i) + x.at(flat_index(c.data, from)) * w.at(flat_index(c.weights, weight)));
    });
  });
  return y;
}

class ConvTranspose : public testing::TestWithParam<Case> {};

TEST_P(ConvTranspose, equals_its_definition) {
  const Case& c = GetParam();
  Rng rng(31);
  const Tensor x = random_tensor(c.data, rng), w = random_tensor(c.weights, rng);
  const Tensor b = random_tensor({c.group * c.weights[1]}, rng);
  TestModel model;
  model.input("x", x.shape()).constant("b", b);
  if (c.constant_weights) {
    model.constant("w", w);
  } else {
    model.input("w", w.shape());
  }
  std::vector<std::string> operands = {"x", "w"};
  if (c.bias) operands.emplace_back("b");
  model.node("ConvTranspose", operands, {"y"},
             {{"group", c.group},
              {"strides", c.strides},
              {"dilations", c.dilations},
              {"pads", c.pads},
              {"output_padding", c.output_padding}});
  model.node("Tanh", {"y"}, {"z"});
  const Graph graph = model.output("z").graph();
  Tensor expected = scattered(c, x, w, c.bias ? &b : nullptr);
  for (int64_t i = 0; i < expected.size(); ++i) expected.set(i, std::tanh(expected.at(i)));
  std::vector<Tensor> inputs = {x};
  if (!c.constant_weights) inputs.push_back(w);
  EXPECT_LT(relative_error(run_optimized(graph, inputs)[0], expected), 1e-5);
  EXPECT_LT(relative_error(run_plainly(graph, inputs)[0], expected), 1e-5);
}

const Case kCases[] = {
    {"many_channels", {2, 3, 5, 4}, {3, 9, 4, 4}, 1, {2, 2}, {1, 1}, {1, 2, 1, 1}, {0, 1}, true},
    {"even_kernel", {2, 3, 5, 4}, {3, 7, 4, 4}, 1, {2, 2}, {1, 1}, {1, 1, 1, 1}, {0, 0}, true},
    {"odd_kernel", {1, 3, 5, 6}, {3, 4, 3, 3}, 1, {2, 2}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
    {"odd_result", {1, 3, 5, 6}, {3, 4, 3, 3}, 1, {2, 2}, {1, 1}, {1, 1, 1, 1}, {0, 1}, false},
    {"no_overlap", {1, 5, 3, 3}, {5, 3, 2, 2}, 1, {2, 2}, {1, 1}, {0, 0, 0, 0}, {0, 0}, true},
    {"stride_1", {1, 3, 5, 7}, {3, 2, 3, 3}, 1, {1, 1}, {1, 1}, {1, 1, 1, 1}, {0, 0}, true},
    {"whole_padding", {1, 3, 5, 7}, {3, 2, 3, 3}, 1, {1, 1}, {1, 1}, {3, 4, 3, 2}, {0, 0}, true},
    {"uneven_strides", {1, 3, 4, 5}, {3, 2, 5, 4}, 1, {3, 2}, {1, 1}, {2, 0, 1, 3}, {2, 0}, true},
    {"gaps", {1, 3, 3, 4}, {3, 2, 2, 1}, 1, {3, 2}, {1, 1}, {0, 0, 0, 0}, {2, 1}, true},
    {"gaps_without_bias",
     {1, 2, 3, 2},
     {2, 3, 1, 1},
     1,
     {2, 2},
     {1, 1},
     {0, 0, 0, 0},
     {0, 0},
     false},
    {"dilated", {1, 3, 5, 4}, {3, 2, 3, 3}, 1, {2, 2}, {2, 3}, {2, 1, 2, 3}, {0, 1}, true},
    {"dilated_with_common_factor",
     {1, 2, 4, 4},
     {2, 3, 3, 2},
     1,
     {4, 6},
     {6, 4},
     {1, 2, 3, 0},
     {0, 3},
     true},
    {"grouped", {1, 6, 4, 3}, {6, 2, 4, 3}, 3, {2, 2}, {1, 1}, {1, 1, 1, 0}, {0, 0}, true},
    {"depthwise", {1, 5, 4, 3}, {5, 1, 4, 4}, 5, {2, 2}, {1, 1}, {1, 1, 1, 1}, {0, 0}, true},
    {"one_result_in_a_stride",
     {1, 2, 1, 2},
     {2, 3, 3, 4},
     1,
     {7, 4},
     {1, 1},
     {1, 2, 1, 1},
     {0, 0},
     true},
    {"one_dimension", {2, 3, 7}, {3, 4, 8}, 1, {4}, {1}, {2, 2}, {0}, true},
    {"three_dimensions",
     {1, 2, 3, 2, 3},
     {2, 3, 3, 2, 4},
     1,
     {2, 1, 2},
     {1, 2, 1},
     {1, 0, 1, 1, 1, 0},
     {1, 0, 0},
     true},
    {"computed_weights",
     {1, 3, 4, 4},
     {3, 2, 3, 3},
     1,
     {2, 2},
     {1, 1},
     {1, 1, 1, 1},
     {1, 1},
     true,
     false},
};
INSTANTIATE_TEST_SUITE_P(conv_transpose, ConvTranspose, testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param.name); });

// x[1, 3, 5, 6] -> ConvTranspose of stride 2 -> c[1, 9, 10, 12]
TestModel upsampled(Rng& rng) {
  TestModel model;
  model.input("x", {1, 3, 5, 6}).constant("w", random_tensor({3, 9, 4, 4}, rng));
  model.node("ConvTranspose", {"x", "w"}, {"c"},
             {{"strides", Shape{2, 2}}, {"pads", Shape{1, 1, 1, 1}}});
  return model;
}

TEST(conv_transpose, its_phases_take_what_follows_and_write_in_place) {
  Rng rng(32);
  TestModel model = upsampled(rng);
  for (const char* name : {"scale", "shift", "mean", "var"})
    model.constant(name, random_tensor({9}, rng, 0.5, 1));
  model.node("BatchNormalization", {"c", "scale", "shift", "mean", "var"}, {"n"});
  model.node("Relu", {"n"}, {"r"}).constant("k", random_tensor({4, 9, 3, 3}, rng));
  model.node("Conv", {"r", "k"}, {"y"}, {{"pads", Shape{1, 1, 1, 1}}}).output("y");
  Graph graph = model.graph();
  const Tensor x = random_tensor({1, 3, 5, 6}, rng);
  EXPECT_LT(relative_error(run_optimized(graph, {x})[0], run_plainly(graph, {x})[0]), 1e-5);
  ASSERT_TRUE(optimize(graph).ok());
  EXPECT_EQ(count(graph, "BatchNormalization") + count(graph, "Mul"), 0);
  EXPECT_EQ(count(graph, "hone.Copy"), 2);  // the data in channels-last order, the result back
  const auto tasks = extract_tasks(graph);
  ASSERT_TRUE(tasks.ok());
  EXPECT_EQ(tasks->calls.size(), 7);  // these, four phases, the convolution after them
}

TEST(conv_transpose, what_varies_along_the_image_stays_behind_it) {
  Rng rng(33);
  TestModel model = upsampled(rng);
  model.input("s", {1, 9, 10, 12}).constant("row", random_tensor({12}, rng));
  model.node("Add", {"c", "s"}, {"a"}).node("Mul", {"c", "row"}, {"m"});
  const Graph graph = model.output("a").output("m").graph();
  const std::vector<Tensor> inputs = {random_tensor({1, 3, 5, 6}, rng),
                                      random_tensor({1, 9, 10, 12}, rng)};
  const auto expected = run_plainly(graph, inputs), actual = run_optimized(graph, inputs);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_LT(relative_error(actual[i], expected[i]), 1e-5);
  const Graph after = run_pass(graph, interleave_last, inputs);
  EXPECT_EQ(types(after), types(graph));
}

}  // namespace
}  // namespace hone::graph
