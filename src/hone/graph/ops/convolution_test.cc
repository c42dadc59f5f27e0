#include <gtest/gtest.h>

#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

struct Case {
  const char* name;
  int64_t n, ic, h, w, oc, kh, kw, group;
  Shape strides, dilations, pads;
  bool bias;
};

// The definition, in N, C, H, W and double.
Tensor direct(const Case& c, const Tensor& x, const Tensor& w, const Tensor* b) {
  const int64_t oh =
      (c.h + c.pads[0] + c.pads[2] - (c.kh - 1) * c.dilations[0] - 1) / c.strides[0] + 1;
  const int64_t ow =
      (c.w + c.pads[1] + c.pads[3] - (c.kw - 1) * c.dilations[1] - 1) / c.strides[1] + 1;
  const int64_t icg = c.ic / c.group, ocg = c.oc / c.group;
  Tensor y(DType::kF32, {c.n, c.oc, oh, ow});
  int64_t flat = 0;
  for (int64_t n = 0; n < c.n; ++n)
    for (int64_t o = 0; o < c.oc; ++o)
      for (int64_t i = 0; i < oh; ++i)
        for (int64_t j = 0; j < ow; ++j) {
          double sum = b ? b->at(o) : 0;
          for (int64_t k = 0; k < icg; ++k)
            for (int64_t p = 0; p < c.kh; ++p)
              for (int64_t q = 0; q < c.kw; ++q) {
                const int64_t r = i * c.strides[0] + p * c.dilations[0] - c.pads[0];
                const int64_t s = j * c.strides[1] + q * c.dilations[1] - c.pads[1];
                if (r < 0 || r >= c.h || s < 0 || s >= c.w) continue;
                sum += x.at(((n * c.ic + o / ocg * icg + k) * c.h + r) * c.w + s) *
                       w.at(((o * icg + k) * c.kh + p) * c.kw + q);
              }
          y.set(flat++, sum);
        }
  return y;
}

class Convolution : public testing::TestWithParam<Case> {};

TEST_P(Convolution, equals_its_definition) {
  const Case& c = GetParam();
  Rng rng(11);
  const Tensor x = random_tensor({c.n, c.ic, c.h, c.w}, rng);
  const Tensor w = random_tensor({c.oc, c.ic / c.group, c.kh, c.kw}, rng);
  const Tensor b = random_tensor({c.oc}, rng);
  TestModel model;
  model.input("x", x.shape()).constant("w", w).constant("b", b);
  model.node(
      "Conv", c.bias ? std::vector<std::string>{"x", "w", "b"} : std::vector<std::string>{"x", "w"},
      {"y"},
      {{"group", c.group}, {"strides", c.strides}, {"dilations", c.dilations}, {"pads", c.pads}});
  const Graph graph = model.output("y").graph();
  const Tensor expected = direct(c, x, w, c.bias ? &b : nullptr);
  EXPECT_LT(relative_error(run_optimized(graph, {x})[0], expected), 1e-5);
  EXPECT_LT(relative_error(run_plainly(graph, {x})[0], expected),
            1e-5);  // guards instead of borders
}

const Case kCases[] = {
    {"pointwise", 1, 3, 4, 5, 7, 1, 1, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, true},
    {"padded", 2, 3, 5, 6, 4, 3, 3, 1, {1, 1}, {1, 1}, {1, 1, 1, 1}, true},
    {"strided", 1, 2, 9, 8, 3, 3, 3, 1, {2, 2}, {1, 1}, {1, 1, 1, 1}, false},
    {"stem", 1, 3, 13, 13, 4, 7, 7, 1, {2, 2}, {1, 1}, {3, 3, 3, 3}, true},
    {"dilated", 1, 2, 9, 9, 3, 3, 3, 1, {1, 1}, {2, 3}, {2, 3, 2, 3}, true},
    {"asymmetric", 1, 2, 5, 5, 3, 2, 3, 1, {1, 2}, {1, 1}, {0, 2, 1, 0}, true},
    {"depthwise", 1, 5, 6, 6, 5, 3, 3, 5, {1, 1}, {1, 1}, {1, 1, 1, 1}, true},
    {"depthwise_strided", 2, 4, 7, 7, 4, 3, 3, 4, {2, 2}, {1, 1}, {1, 1, 1, 1}, false},
    {"multiplier", 1, 3, 5, 5, 6, 3, 3, 3, {1, 1}, {1, 1}, {1, 1, 1, 1}, true},
    {"grouped", 1, 6, 5, 5, 4, 3, 3, 2, {1, 1}, {1, 1}, {1, 1, 1, 1}, true},
    {"grouped_without_bias", 1, 6, 5, 5, 9, 3, 3, 3, {2, 1}, {1, 1}, {1, 1, 1, 1}, false},
};
INSTANTIATE_TEST_SUITE_P(conv, Convolution, testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param.name); });

// They cannot be packed, nor put into another order.
TEST(conv, weights_may_be_known_only_at_run_time) {
  Rng rng(14);
  for (const Case& c : kCases) {
    const Tensor x = random_tensor({c.n, c.ic, c.h, c.w}, rng);
    const Tensor w = random_tensor({c.oc, c.ic / c.group, c.kh, c.kw}, rng);
    TestModel model;
    model.input("x", x.shape()).input("w", w.shape());
    model.node(
        "Conv", {"x", "w"}, {"y"},
        {{"group", c.group}, {"strides", c.strides}, {"dilations", c.dilations}, {"pads", c.pads}});
    const Tensor y = run_optimized(model.output("y").graph(), {x, w})[0];
    EXPECT_LT(relative_error(y, direct(c, x, w, nullptr)), 1e-5) << c.name;
  }
}

TEST(conv, same_padding_puts_the_odd_element_where_it_says) {
  Rng rng(12);
  const Tensor x = random_tensor({1, 1, 4, 4}, rng), w = random_tensor({1, 1, 2, 2}, rng);
  for (const bool upper : {true, false}) {
    TestModel model;
    model.input("x", x.shape()).constant("w", w);
    model
        .node("Conv", {"x", "w"}, {"y"},
              {{"auto_pad", std::string(upper ? "SAME_UPPER" : "SAME_LOWER")}})
        .output("y");
    Case c{"same", 1, 1, 4,      4,      1,
           2,      2, 1, {1, 1}, {1, 1}, upper ? Shape{0, 0, 1, 1} : Shape{1, 1, 0, 0},
           false};
    EXPECT_LT(relative_error(run_optimized(model.graph(), {x})[0], direct(c, x, w, nullptr)), 1e-5);
  }
}

TEST(conv, has_one_and_three_spatial_dimensions_too) {
  Rng rng(13);
  for (const Shape& spatial : {Shape{7}, Shape{4, 3, 5}}) {
    Shape x_shape = {1, 2}, w_shape = {3, 2};
    x_shape.insert(x_shape.end(), spatial.begin(), spatial.end());
    w_shape.insert(w_shape.end(), spatial.size(), 3);
    const Tensor x = random_tensor(x_shape, rng), w = random_tensor(w_shape, rng);
    TestModel model;
    model.input("x", x_shape).constant("w", w);
    model.node("Conv", {"x", "w"}, {"y"}, {{"pads", Shape(2 * spatial.size(), 1)}}).output("y");
    const Tensor y = run_optimized(model.graph(), {x})[0];
    EXPECT_EQ(y.shape().size(), x_shape.size());
    // At the first corner the window covers kernel positions 1 and 2 of each dimension.
    double corner = 0;
    const int64_t points = num_elements(spatial),
                  taps = num_elements(Shape(w_shape.begin() + 2, w_shape.end()));
    for (int64_t channel = 0; channel < 2; ++channel) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        int64_t at = 0, rest = tap, stride = 1;
        bool inside = true;
        for (size_t d = spatial.size(); d-- > 0;) {
          inside = inside && rest % 3 > 0;
          at += (rest % 3 - 1) * stride;
          stride *= spatial[d];
          rest /= 3;
        }
        if (inside) corner += x.at(channel * points + at) * w.at(channel * taps + tap);
      }
    }
    EXPECT_NEAR(y.at(0), corner, 1e-5);
  }
}

}  // namespace
}  // namespace hone::graph
