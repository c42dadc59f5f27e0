#include "hone/session/limit_tasks.h"

#include <gtest/gtest.h>

#include "hone/graph/import_onnx.h"
#include "hone/graph/passes/pass.h"
#include "hone/schedule/lower.h"
#include "hone/session/limited_model_testing.h"

namespace hone {
namespace {

TEST(limit_tasks, limits_of_dimensions_and_of_offsets) {
  // Rows of 64, of [8, 32, 64] and of the same memory in other shapes.
  const ir::SizeLimit rows{.form = 1, .dimension = 1};
  const auto offsets = to_offsets(rows, {8, 32, 64});
  ASSERT_TRUE(offsets);
  EXPECT_EQ(offsets->stride, 64);
  EXPECT_EQ(offsets->extent, 32);
  EXPECT_EQ(to_dimension(*offsets, {8, 32, 64}), rows);
  EXPECT_EQ(to_dimension(*offsets, {256, 64}), (ir::SizeLimit{.form = 1, .period = 32}));
  EXPECT_EQ(to_dimension(*offsets, {16384}),
            (ir::SizeLimit{.form = 1, .period = 2048, .unit = 64}));
  EXPECT_EQ(to_dimension(*offsets, {8, 32, 8, 8}), rows);
  EXPECT_FALSE(to_dimension(*offsets, {8, 16, 128}));
  // The slowest dimension has no end in memory.
  const auto batch = to_offsets({.form = 0}, {8, 32, 64});
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->extent, 0);
  EXPECT_EQ(to_dimension(*batch, {256, 64}), (ir::SizeLimit{.form = 0, .unit = 32}));
  EXPECT_EQ(to_offsets({.form = 0, .unit = 32}, {256, 64})->stride, batch->stride);
  // Parts of merged dimensions.
  const auto merged = limits_of_parts({{{0, 8}, {1, 32}}, {{graph::kNoForm, 64}}}, {256, 64});
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].stride, 32 * 64);
  EXPECT_EQ(merged[0].extent, 0);
  EXPECT_EQ(merged[1].stride, 64);
  EXPECT_EQ(merged[1].extent, 32);
  EXPECT_TRUE(limits_of_parts({{{0, 8}}}, {9}).empty());
}

// The tasks of a model for ranges, and their limits.
struct Limited {
  graph::TaskList tasks;
  std::vector<KernelLimits> limits;
};
Limited limited(const graph::TestModel& model, const std::map<std::string, ShapeRange>& ranges,
                bool mixes = false) {
  const std::string bytes = model.bytes();
  Result<graph::Graph> graph = graph::import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "",
                                                        {.ranges = ranges, .open_ranges = true});
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_TRUE(graph::optimize(*graph, {}).ok());
  Limited made{*graph::extract_tasks(*graph), {}};
  ScheduledCalls calls;
  calls.mixes = [mixes](const graph::TaskCall&) { return mixes; };
  calls.lower = [](const graph::TaskCall&, const compute::Dag& dag) -> Result<search::ProgramPtr> {
    HONE_ASSIGN_OR_RETURN(ir::Program program, schedule::lower(dag, {}));
    return std::make_shared<const ir::Program>(std::move(program));
  };
  made.limits = *limits_of_calls(made.tasks, calls);
  return made;
}

TEST(limit_tasks, all_tasks_of_a_batch_have_its_limit) {
  Rng rng(1);
  graph::TestModel model;
  model.open_input("x", {"batch", "3", "8", "8"})
      .constant("w", graph::random_tensor({4, 3, 3, 3}, rng))
      .constant("v", graph::random_tensor({64, 5}, rng))
      .constant("shape", graph::ints({-1, 64}))
      .node("Conv", {"x", "w"}, {"c"}, {{"pads", Shape{1, 1, 1, 1}}})
      .node("MaxPool", {"c"}, {"p"}, {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}})
      .node("Reshape", {"p", "shape"}, {"f"})
      .node("MatMul", {"f", "v"}, {"y"})
      .output("y");
  for (const bool mixes : {false, true}) {
    const Limited made = limited(model, {}, mixes);
    ASSERT_GE(made.limits.size(), 3u);
    for (size_t c = 0; c < made.limits.size(); ++c) {
      EXPECT_EQ(made.limits[c].outputs.size(), 1u) << made.tasks.calls[c].name;
    }
  }
}

TEST(limit_tasks, attention_ends_at_its_keys) {
  Rng rng(1);
  const graph::TestModel model = self_attention("seq", 16, rng);
  const Limited made = limited(model, {});
  int ends = 0, products = 0;
  for (size_t c = 0; c < made.limits.size(); ++c) {
    const graph::TaskCall& call = made.tasks.calls[c];
    if (!made.limits[c].ends.empty()) ends += static_cast<int>(made.limits[c].ends.size());
    const bool is_product = compute::kernel_class(call.dag).starts_with("gemm");
    if (is_product && !made.limits[c].outputs.empty()) ++products;
  }
  EXPECT_GE(ends, 3) << graph::describe(made.tasks);
  EXPECT_GE(products, 2) << graph::describe(made.tasks);
  const LimitedTasks split = split_groups(made.tasks, made.limits);
  ASSERT_EQ(split.limits.size(), split.tasks.groups.size());
  for (const graph::TaskCall& call : split.tasks.calls) {
    const auto group = static_cast<size_t>(call.group);
    const auto c = static_cast<size_t>(&call - split.tasks.calls.data());
    EXPECT_EQ(split.limits[group], made.limits[c]);
    EXPECT_EQ(split.tasks.groups[group].key, made.tasks.groups[split.group_before[group]].key);
  }
}

}  // namespace
}  // namespace hone
