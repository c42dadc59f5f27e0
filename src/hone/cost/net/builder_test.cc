#include "hone/cost/net/builder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/cost/net/evaluate.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

NetBuilder builder() { return {"test", {{"x", {2, 3}}, {"v", {3}}}}; }

// The values of a net of one output beside the score, of a batch of inputs.
std::vector<float> values_of(NetBuilder& b, Value value, const NetBatch& batch) {
  if (b.dims(value).size() > 1 && b.dims(value).back() == 1 && b.dims(value).size() == 2) {
    b.output("score", value);
    return evaluate(b.finish(), batch)[0];
  }
  Value score = b.reduce_sum(b.input("v"), 1, true);
  b.output("value", value);
  b.output("score", score);
  return evaluate(b.finish(), batch)[0];
}

TEST(net_builder, infers_shapes) {
  NetBuilder b = builder();
  const Value x = b.input("x");
  EXPECT_EQ(b.dims(x), (Dims{-1, 2, 3}));
  const Value w = b.parameter("w", {3, 5}, {Fill::kXavier});
  EXPECT_EQ(b.dims(b.matmul(x, w)), (Dims{-1, 2, 5}));
  EXPECT_EQ(b.dims(b.matmul(x, b.transpose(x, {0, 2, 1}))), (Dims{-1, 2, 2}));
  EXPECT_EQ(b.dims(b.add(x, b.scalar(1))), (Dims{-1, 2, 3}));
  EXPECT_EQ(b.dims(b.add(x, b.reshape(b.input("v"), {-1, 1, 3}))), (Dims{-1, 2, 3}));
  EXPECT_EQ(b.dims(b.reduce_sum(x, 1)), (Dims{-1, 3}));
  EXPECT_EQ(b.dims(b.reduce_mean(x, 2, true)), (Dims{-1, 2, 1}));
  EXPECT_EQ(b.dims(b.concat({x, x}, 2)), (Dims{-1, 2, 6}));
  EXPECT_EQ(b.dims(b.slice(x, 2, 1, 3)), (Dims{-1, 2, 2}));
}

TEST(net_builder, an_input_is_one_node_and_only_those_that_are_read_are_listed) {
  NetBuilder b = builder();
  EXPECT_EQ(b.input("v").node, b.input("v").node);
  b.output("score", b.reduce_sum(b.input("v"), 1, true));
  const Net net = b.finish();
  ASSERT_EQ(net.inputs.size(), 1U);
  EXPECT_EQ(net.inputs[0].name, "v");
}

TEST(net_builder_death, says_what_does_not_fit) {
  NetBuilder b = builder();
  const Value x = b.input("x"), v = b.input("v");
  EXPECT_DEATH((void)b.input("y"), "there is no input 'y'");
  EXPECT_DEATH((void)b.matmul(x, x), R"(matmul: \[-1, 2, 3\] does not fit \[-1, 2, 3\])");
  EXPECT_DEATH((void)b.add(x, v), R"(add: \[-1, 2, 3\] does not fit \[-1, 3\])");
  EXPECT_DEATH((void)b.add(b.slice(x, 1, 0, 1), v), "the batch of");
  EXPECT_DEATH((void)b.reshape(x, {-1, 5}), R"(reshape: \[-1, 2, 3\] to \[-1, 5\])");
  EXPECT_DEATH((void)b.slice(x, 2, 2, 4), "slice: 2 to 4 along axis 2");
  EXPECT_DEATH((void)b.reduce_sum(x, 0), "over axis 0");
  EXPECT_DEATH((void)b.finish(), "a net without a score");
}

TEST(net_builder, prints_one_line_a_node) {
  NetBuilder b = builder();
  const Value w = b.parameter("w", {3, 1}, {Fill::kXavier});
  b.output("score", b.clip(b.matmul(b.input("v"), w), -1, 1));
  EXPECT_EQ(print(b.finish()),
            "net test\n"
            "input v [3]\n"
            "parameter w [3, 1]\n"
            "%2 = matmul(v, w) [-1, 1]\n"
            "%3 = clip(%2, -1, 1) [-1, 1]\n"
            "output score %3\n");
}

TEST(net_initialise, the_seed_and_the_name_alone_decide) {
  const auto make = [](bool other_first) {
    NetBuilder b = builder();
    Value other;
    if (other_first) other = b.parameter("other", {3, 1}, {Fill::kNormal, 0.1});
    const Value w = b.parameter("w", {3, 1}, {Fill::kXavier});
    b.output("score", b.matmul(b.input("v"), w));
    return b.finish();
  };
  Net one = make(false), two = make(true), another = make(false);
  initialise(one, 7), initialise(two, 7), initialise(another, 8);
  EXPECT_EQ(one.find_parameter("w")->values, two.find_parameter("w")->values);
  EXPECT_NE(one.find_parameter("w")->values, another.find_parameter("w")->values);
  for (const float value : one.find_parameter("w")->values)
    EXPECT_LE(std::abs(value), std::sqrt(6.0 / 4));
}

TEST(net_evaluate, computes_matmul_reduce_slice_concat_and_transpose) {
  const NetBatch batch{.rows = 1, .inputs = {{1, 2, 3, 4, 5, 6}, {1, 0, 2}}};
  {
    NetBuilder b = builder();
    const Value x = b.input("x");
    EXPECT_EQ(values_of(b, b.matmul(x, b.transpose(x, {0, 2, 1})), batch),
              (std::vector<float>{14, 32, 32, 77}));
  }
  {
    NetBuilder b = builder();
    const Value x = b.input("x");
    const Value parts = b.concat({b.slice(x, 2, 0, 1), b.reduce_mean(x, 2, true)}, 2);
    EXPECT_EQ(values_of(b, parts, batch), (std::vector<float>{1, 2, 4, 5}));
  }
  {
    NetBuilder b = builder();
    const Value x = b.mul(b.input("x"), b.scalar(-1));
    EXPECT_EQ(
        values_of(b, b.concat({b.reduce_max(x, 1, true), b.reduce_sum(x, 1, true)}, 1), batch),
        (std::vector<float>{-1, -2, -3, -5, -7, -9}));
  }
  {
    NetBuilder b = builder();
    const Value x = b.input("x");
    EXPECT_EQ(values_of(b, b.greater(x, b.reduce_mean(x, 1, true)), batch),
              (std::vector<float>{0, 0, 0, 1, 1, 1}));
  }
}

TEST(net_evaluate, normalises_rows_and_softmax_sums_to_one) {
  const NetBatch batch{.rows = 1, .inputs = {{1, 2, 3, 4, 5, 9}, {1, 0, 2}}};
  NetBuilder b = builder();
  const Value x = b.input("x");
  const Value gamma = b.constant("gamma", {3}, {1, 1, 1}),
              beta = b.constant("beta", {3}, {0, 0, 0});
  const Value both = b.concat({b.layer_norm(x, gamma, beta), b.softmax(x)}, 2);
  const std::vector<float> values = values_of(b, both, batch);
  for (size_t row = 0; row < 2; ++row) {
    const float* v = &values[row * 6];
    EXPECT_NEAR(v[0] + v[1] + v[2], 0, 1e-6);
    EXPECT_NEAR(v[0] * v[0] + v[1] * v[1] + v[2] * v[2], 3, 1e-3);
    EXPECT_NEAR(v[3] + v[4] + v[5], 1, 1e-6);
    EXPECT_LT(v[3], v[4]);
  }
}

TEST(net_layers, sparsemax_is_the_nearest_point_of_the_simplex) {
  NetBuilder b = builder();
  const NetBatch batch{.rows = 1, .inputs = {{0.1F, 0.5F, 0.9F, 3, 0, -1}, {0, 0, 0}}};
  const Value x = b.input("x");
  const std::vector<float> values = values_of(b, sparsemax(b, x), batch);
  const std::vector<float> expected = {0, 0.3F, 0.7F, 1, 0, 0};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-6);
}

}  // namespace
}  // namespace hone::cost::net
