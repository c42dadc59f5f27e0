#include "hone/graph/decided_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hone/graph/passes/pass.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

Graph optimized(const TestModel& model) {
  Graph graph = model.graph();
  EXPECT_TRUE(optimize(graph, {}).ok());
  return graph;
}

// Rows of x [100, 8] that a mask takes.
TestModel rows_of_mask() {
  TestModel model;
  model.input("x", {100, 8}).input("mask", {100}, DType::kBool);
  model.node("Compress", {"x", "mask"}, {"rows"}, {{"axis", int64_t{0}}});
  return model;
}

TEST(decided_sizes, one_number_has_many_places) {
  Rng rng(1);
  TestModel model = rows_of_mask();
  model.constant("w", random_tensor({8, 8}, rng)).node("MatMul", {"rows", "w"}, {"a"});
  model.node("Transpose", {"a"}, {"b"}, {{"perm", std::vector<int64_t>{1, 0}}});
  model.node("MatMul", {"a", "b"}, {"c"}).output("c");
  const Graph graph = optimized(model);
  const std::vector<DecidedSize> sizes = find_decided_sizes(graph);
  ASSERT_EQ(sizes.size(), 1U) << describe(graph);
  EXPECT_EQ(sizes[0].most, 100);
  std::set<int> buffers;
  for (const DecidedPlace& place : sizes[0].places) {
    const Buffer& buffer = graph.buffers[static_cast<size_t>(place.buffer)];
    EXPECT_EQ(buffer.dtype, DType::kI64);
    EXPECT_LT(place.element, num_elements(buffer.shape));
    buffers.insert(place.buffer);
  }
  EXPECT_GT(buffers.size(), 1U);
}

TEST(decided_sizes, two_masks_decide_two_numbers) {
  TestModel model = rows_of_mask();
  model.input("other", {100}, DType::kBool).constant("axes", ints({0}));
  model.node("Compress", {"x", "other"}, {"others"}, {{"axis", int64_t{0}}});
  model.node("ReduceSum", {"rows", "axes"}, {"a"}).node("ReduceSum", {"others", "axes"}, {"b"});
  const std::vector<DecidedSize> sizes =
      find_decided_sizes(optimized(model.output("a").output("b")));
  EXPECT_EQ(sizes.size(), 2U);
}

TEST(decided_sizes, fixed_shapes_have_none) {
  TestModel model;
  model.input("x", {4, 8}).input("i", {4}, DType::kI64).constant("n", ints({3}));
  model.node("Less", {"i", "n"}, {"y"}).node("Relu", {"x"}, {"z"}).output("y").output("z");
  EXPECT_TRUE(find_decided_sizes(optimized(model)).empty());
}

// The number of gathers of floats in a model of rows in another shape.
int64_t gathers_behind(const std::string& type, const AttributeList& attributes,
                       const std::vector<std::string>& operands, TestModel model) {
  std::vector<std::string> inputs = {"rows"};
  inputs.insert(inputs.end(), operands.begin(), operands.end());
  const Graph graph = model.node(type, inputs, {"y"}, attributes).output("y").graph();
  return std::ranges::count_if(graph.nodes, [&](const Node& node) {
    return node.type == "Gather" && graph.value(node.outputs[0]).dtype == DType::kF32;
  });
}

TEST(decided_sizes, a_dimension_that_keeps_its_place_is_not_gathered) {
  const auto to = [](const std::vector<int64_t>& shape) {
    return std::move(rows_of_mask().constant("shape", ints(shape)));
  };
  EXPECT_EQ(gathers_behind("Reshape", {}, {"shape"}, to({0, 2, 4})), 0);
  EXPECT_EQ(gathers_behind("Reshape", {}, {"shape"}, to({-1, 4, 2})), 0);
  EXPECT_EQ(gathers_behind("Flatten", {{"axis", int64_t{1}}}, {}, rows_of_mask()), 0);
  // Rows side by side: where each one begins follows from the number of rows.
  EXPECT_EQ(gathers_behind("Reshape", {}, {"shape"}, to({2, -1, 4})), 1);
}

}  // namespace
}  // namespace hone::graph
