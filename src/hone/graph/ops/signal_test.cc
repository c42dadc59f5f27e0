#include <gtest/gtest.h>

#include "hone/graph/follow_sizes.h"
#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/size_check.h"
#include "hone/graph/widen_nodes.h"

namespace hone::graph {
namespace {

// A DFT along dimension 1, not inferred.
Graph not_inferred(Shape shape, bool inverse, bool onesided) {
  Graph graph;
  graph.opset = 17;
  graph.inputs = {graph.add_value("x", DType::kF32, std::move(shape))};
  graph.outputs = {graph.add_value("y", DType::kF32, {})};
  graph.output_names = {"y"};
  Node node;
  node.name = node.type = "DFT";
  node.op = find_op("DFT", graph.opset);
  node.attributes.set("inverse", int64_t{inverse});
  node.attributes.set("onesided", int64_t{onesided});
  node.inputs = graph.inputs;
  node.outputs = graph.outputs;
  graph.nodes.push_back(std::move(node));
  return graph;
}

TEST(signal, the_shape_of_a_spectrum_is_known_without_waves) {
  for (const int64_t parts : {1, 2}) {
    for (const bool inverse : {false, true}) {
      for (const bool onesided : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", parts, inverse, onesided));
        Graph whole = not_inferred({3, 9, parts}, inverse, onesided);
        const std::optional<Graph> raw = with_shapes_only(whole);
        ASSERT_TRUE(raw);
        Graph shapes = *raw;
        ASSERT_TRUE(infer_shapes(whole).ok());
        const Status status = infer_shapes(shapes);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(shapes.value(shapes.outputs[0]).shape, whole.value(whole.outputs[0]).shape);
        EXPECT_GT(whole.made_bytes, 0);
        EXPECT_EQ(shapes.made_bytes, 0);
      }
    }
  }
}

// A range is widened before the waves of any size are computed: those of the largest would take
// 512 MiB.
TEST(signal, ranges_of_transforms_make_no_waves) {
  const Graph raw = not_inferred({1, 8192, 1}, false, false);
  const SizeForm n{.terms = {{1, {0}}}};
  const std::optional<Graph> widened = widened_by_shapes(
      raw, {.symbols = {{"n", 600, 8192}}, .inputs = {{"x", {{.offset = 1}, n, {.offset = 1}}}}});
  ASSERT_TRUE(widened);
  for (const Node& node : widened->nodes) EXPECT_NE(node.type, "DFT");
}

// The waves of all places and bins come from one period, of which there are as many as places.
TEST(signal, waves_are_those_of_their_places) {
  constexpr int64_t kLength = 12;
  Graph graph = not_inferred({1, kLength, 1}, false, false);
  ASSERT_TRUE(infer_shapes(graph).ok());
  const Tensor* waves = nullptr;
  for (const Value& value : graph.values) {
    if (value.constant && value.shape == Shape{kLength, 2 * kLength}) waves = &*value.constant;
  }
  ASSERT_NE(waves, nullptr);
  for (int64_t n = 0; n < kLength; ++n) {
    for (int64_t k = 0; k < kLength; ++k) {
      const double angle = 2 * 3.14159265358979323846 * static_cast<double>(n * k) / kLength;
      EXPECT_NEAR(waves->at((n * kLength + k) * 2), std::cos(angle), 1e-6) << n << " " << k;
      EXPECT_NEAR(waves->at((n * kLength + k) * 2 + 1), -std::sin(angle), 1e-6) << n << " " << k;
    }
  }
}

}  // namespace
}  // namespace hone::graph
