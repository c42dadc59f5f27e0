#include <gtest/gtest.h>

#include <cmath>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

// Two channels of {1, 3, 5, 7} and {0, 0, 4, 4}: means 4 and 2, variances 5 and 4.
const Shape kShape = {2, 2, 2};
Tensor data() { return floats(kShape, {1, 3, 0, 0, 5, 7, 4, 4}); }

TestModel training_model(int opset, const std::vector<std::string>& results) {
  TestModel model(opset);
  model.input("x", kShape).constant("s", floats({2}, {1, 2})).constant("b", floats({2}, {0, 1}));
  model.constant("m", floats({2}, {10, 0})).constant("v", floats({2}, {1, 2}));
  AttributeList attributes = {{"momentum", 0.75f}, {"epsilon", 0.0f}};
  if (opset >= 14) attributes.push_back({"training_mode", int64_t{1}});
  model.node("BatchNormalization", {"x", "s", "b", "m", "v"}, results, attributes);
  for (const std::string& result : results) model.output(result);
  return model;
}

TEST(batch_norm, in_training_uses_and_returns_the_statistics_of_the_batch) {
  const auto r = static_cast<float>(1 / std::sqrt(5.0));
  const Tensor y = floats(kShape, {-3 * r, -r, -1, -1, r, 3 * r, 3, 3});
  const std::vector<Tensor> expected = {y, floats({2}, {8.5f, 0.5f}), floats({2}, {2, 2.5f}),
                                        floats({2}, {4, 2}), floats({2}, {5, 4})};
  for (const int opset : {9, 15}) {
    std::vector<std::string> results = {"y", "rm", "rv"};
    if (opset < 14) results.insert(results.end(), {"bm", "bv"});
    const auto found = run_optimized(training_model(opset, results).graph(), {data()});
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_LT(relative_error(found[i], expected[i]), 1e-6) << results[i];
  }
}

TEST(batch_norm, has_one_channel_if_the_data_are_a_list) {
  TestModel model;
  model.input("x", {3}).constant("s", floats({1}, {2})).constant("b", floats({1}, {1}));
  model.constant("m", floats({1}, {1})).constant("v", floats({1}, {4}));
  model.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, {{"epsilon", 0.0f}});
  model.output("y");
  EXPECT_LT(relative_error(run_optimized(model.graph(), {floats({3}, {1, 3, -5})})[0],
                           floats({3}, {1, 3, -5})),
            1e-6);
}

TEST(batch_norm, outside_training_has_one_result) {
  TestModel model(15);
  model.input("x", {1, 1, 2});
  for (const char* name : {"s", "b", "m", "v"}) model.constant(name, floats({1}, {1}));
  model.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y", "rm"}).output("y");
  const auto graph = model.import();
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("2 results outside training"), std::string::npos);
}

TEST(layer_norm, returns_mean_and_inverse_deviation) {
  TestModel model;
  model.input("x", {2, 2}).constant("s", floats({2}, {2, 3})).constant("b", floats({2}, {1, 0}));
  model.node("LayerNormalization", {"x", "s", "b"}, {"y", "m", "i"}, {{"epsilon", 0.0f}});
  model.output("y").output("m").output("i");
  const auto found = run_optimized(model.graph(), {floats({2, 2}, {1, 5, -1, -2})});
  EXPECT_LT(relative_error(found[0], floats({2, 2}, {-1, 3, 3, -3})), 1e-6);
  EXPECT_LT(relative_error(found[1], floats({2, 1}, {3, -1.5f})), 1e-6);
  EXPECT_LT(relative_error(found[2], floats({2, 1}, {0.5f, 2})), 1e-6);
}

TEST(rms_norm, has_the_type_of_its_scale) {
  Tensor scale(DType::kF64, {2});
  scale.set(0, 1);
  scale.set(1, 2);
  TestModel model(23);
  model.input("x", {1, 2}).constant("s", scale);
  model.node("RMSNormalization", {"x", "s"}, {"y"}, {{"epsilon", 0.0f}}).output("y");
  const Tensor y = run_optimized(model.graph(), {floats({1, 2}, {1, 7})})[0];
  EXPECT_EQ(y.dtype(), DType::kF64);
  EXPECT_NEAR(y.at(0), 0.2, 1e-6);
  EXPECT_NEAR(y.at(1), 2.8, 1e-6);
}

TEST(det, exchanges_rows_and_notices_singular_matrices) {
  TestModel model;
  model.input("x", {3, 3, 3}).node("Det", {"x"}, {"y"}).output("y");
  const Tensor x = floats({3, 3, 3}, {0, 1, 2, 1, 0, 3, 4,  -3, 8,    //
                                      1, 2, 3, 4, 5, 6, 7,  8,  9,    //
                                      0, 0, 2, 0, 5, 0, -3, 0,  0});  //
  EXPECT_LT(relative_error(run_optimized(model.graph(), {x})[0], floats({3}, {-2, 0, 30})), 1e-6);
}

TEST(loss, skips_ignored_labels_and_weighs_the_mean) {
  const Tensor log_prob = floats({3, 2}, {-1, -2, -3, -4, -5, -6});
  TestModel model;
  model.input("x", {3, 2}).constant("t", ints({1, -7, 0}).reshaped({3}));
  model.constant("w", floats({2}, {1, 3}));
  model.node("NegativeLogLikelihoodLoss", {"x", "t", "w"}, {"y"}, {{"ignore_index", int64_t{-7}}});
  model.output("y");
  const float mean = (2 * 3 + 5 * 1) / 4.0f;
  EXPECT_LT(relative_error(run_optimized(model.graph(), {log_prob})[0], floats({}, {mean})), 1e-6);
}

TEST(lp_pool, counts_what_lies_outside_as_zero) {
  TestModel model(18);
  model.input("x", {1, 1, 4});
  model.node("LpPool", {"x"}, {"y"},
             {{"kernel_shape", Shape{2}},
              {"strides", Shape{2}},
              {"pads", Shape{1, 0}},
              {"ceil_mode", int64_t{1}},
              {"auto_pad", std::string("NOTSET")}});
  model.output("y");
  const Tensor y = run_optimized(model.graph(), {floats({1, 1, 4}, {5, 3, -4, 2})})[0];
  EXPECT_LT(relative_error(y, floats({1, 1, 3}, {5, 5, 2})), 1e-6);
}

}  // namespace
}  // namespace hone::graph
