// Models whose shapes vary, from a graph to a library.
#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/file.h"
#include "hone/commands/check/sized_values.h"
#include "hone/commands/tune.h"
#include "hone/commands/varying_rows_testing.h"
#include "hone/commands/verify.h"
#include "hone/graph/memory_plan.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/size_values.h"
#include "hone/graph/test_model.h"
#include "hone/model.h"

namespace hone {
namespace {

using graph::TestModel;

constexpr int64_t kBatch = 4, kSeq = 6;

// x of [batch, seq]; y = x * x + x, t is y transposed.
TestModel network(int64_t batch, int64_t seq, const std::string& last = "Add") {
  TestModel model;
  model.input("x", {batch, seq});
  model.node("Mul", {"x", "x"}, {"s"})
      .node("Transpose", {"s"}, {"st"}, {{"perm", Shape{1, 0}}})
      .node(last, {"s", "x"}, {"y"})
      .node("Sigmoid", {"st"}, {"t"})
      .output("y")
      .output("t");
  return model;
}

// The model of the largest shapes, which also returns two of its sizes.
graph::Graph varying_graph() {
  TestModel model = network(kBatch, kSeq);
  model.input("hone.sizes", {graph::kMaxForms}, DType::kI64);
  model.constant("which", graph::ints({1, 0}))
      .node("Gather", {"hone.sizes", "which"}, {"seen"})
      .output("seen");
  graph::Graph graph = model.graph();
  graph::Varying& varying = graph.varying;
  varying.symbols = {{"batch", 1, kBatch}, {"seq", 2, kSeq}};
  varying.forms = {{.terms = {{1, {0}}}}, {.terms = {{1, {1}}}}};
  const graph::DimParts batch = {{0, kBatch}}, seq = {{1, kSeq}};
  varying.inputs = {{batch, seq}};
  varying.outputs = {{batch, seq}, {seq, batch}, {}};
  varying.sizes = graph.inputs.back();
  return graph;
}

CompileOptions options() {
  CompileOptions options;
  options.records.use_db = false;
  options.target.threads = 2;
  options.library.check = true;
  return options;
}

TEST(varying_models, sizes_have_memory_of_their_own) {
  graph::Graph graph = varying_graph();
  ASSERT_TRUE(graph::optimize(graph).ok());
  const Result<graph::TaskList> tasks = graph::extract_tasks(graph);
  ASSERT_TRUE(tasks.ok()) << tasks.status().message();
  ASSERT_EQ(tasks->inputs.size(), 1U);
  ASSERT_GE(tasks->sizes, 0);
  const graph::MemoryPlan plan = graph::plan_memory(*tasks);
  ASSERT_TRUE(graph::verify(plan, *tasks).ok());
  const auto sizes = static_cast<size_t>(tasks->sizes);
  EXPECT_GE(plan.offsets[sizes], 0);
  EXPECT_EQ(plan.lives[sizes], std::pair(0, static_cast<int>(tasks->calls.size())));
}

TEST(varying_models, compile_to_libraries_of_all_sizes) {
  const Result<TempDir> folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const std::string library = folder->file("model.so");
  const Result<CompileSummary> summary = compile(varying_graph(), library, options());
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_TRUE(summary->check.checked) << summary->check.skipped;
  EXPECT_EQ(summary->check.inputs, 5);  // three draws at the largest sizes, two at others
  Result<Model> model = Model::load(library, 2);
  ASSERT_TRUE(model.ok()) << model.status().message();
  Rng rng(1);
  for (const Shape& shape : {Shape{1, 2}, Shape{3, 6}, Shape{4, 5}, Shape{4, 6}, Shape{2, 3}}) {
    const Tensor x = graph::random_tensor(shape, rng);
    const Result<std::vector<Tensor>> found = model->run(std::span(&x, 1));
    ASSERT_TRUE(found.ok()) << found.status().message();
    const std::vector<Tensor> expected =
        graph::run_plainly(network(shape[0], shape[1]).graph(), {x});
    EXPECT_LT(graph::relative_error((*found)[0], expected[0]), 1e-6);
    EXPECT_LT(graph::relative_error((*found)[1], expected[1]), 1e-5);
    EXPECT_EQ((*found)[2].as<int64_t>()[0], shape[1]);
    EXPECT_EQ((*found)[2].as<int64_t>()[1], shape[0]);
  }
}

TEST(varying_models, tell_which_schedule_runs_at_which_sizes) {
  const Result<TempDir> folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const Result<CompileSummary> summary =
      compile(testing::product_of_rows(256, 192), folder->file("model.so"), options());
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  ASSERT_EQ(summary->tasks.size(), 1U);
  const TaskSummary& task = summary->tasks[0];
  ASSERT_EQ(task.sizes.size(), 1U);
  const SizeTable& table = task.sizes[0];
  EXPECT_EQ(table.decided_by, "rows");
  EXPECT_EQ(table.calls, 1);
  ASSERT_EQ(table.points.size(), 6U);
  EXPECT_EQ(table.points.front().run, "rows=1");
  EXPECT_EQ(table.points.back().run, "rows=256");
  ASSERT_GE(table.rows.size(), 2U) << "one row has a schedule of its own";
  int64_t from = 1;
  for (const SizeTable::Row& row : table.rows) {
    EXPECT_EQ(row.from, from);
    from = row.most + 1;
    ASSERT_EQ(row.times.size(), table.points.size());
    for (const SizeTable::Time& time : row.times) {
      EXPECT_GT(time.seconds, 0);
      EXPECT_FALSE(time.measured);
    }
  }
  EXPECT_EQ(from, 257);
  EXPECT_EQ(table.measured_points(), 0U);
  const SizeTable::Row& largest = table.rows.back();
  EXPECT_EQ(largest.steps, task.steps);
  EXPECT_NEAR(largest.times.back().seconds, task.predicted_seconds, 1e-9 * task.predicted_seconds);
  EXPECT_LT(table.rows.front().times.front().seconds, largest.times.front().seconds);
}

TEST(varying_models, are_verified_at_several_sizes) {
  VerifyOptions with;
  with.compile = options();
  const auto at = [](const std::string& last) {
    return [last](const std::map<std::string, Shape>& shapes) -> Result<graph::Graph> {
      const Shape& x = shapes.at("x");
      return network(x[0], x[1], last)
          .constant("seen", graph::ints({x[1], x[0]}))
          .output("seen")
          .graph();
    };
  };
  const Result<VerifyReport> right = verify(varying_graph(), with, at("Add"));
  ASSERT_TRUE(right.ok()) << right.status().message();
  EXPECT_TRUE(right->divergences.empty()) << right->divergences[0].value;
  ASSERT_GE(right->sizes.size(), 3U);
  EXPECT_EQ(right->sizes[0], "batch=4, seq=6");
  EXPECT_EQ(right->sizes[1], "batch=1, seq=2");

  const Result<VerifyReport> wrong = verify(varying_graph(), with, at("Sub"));
  ASSERT_TRUE(wrong.ok()) << wrong.status().message();
  ASSERT_FALSE(wrong->divergences.empty());
  EXPECT_EQ(wrong->divergences[0].value, "y");
  EXPECT_EQ(wrong->divergences[0].size, "batch=1, seq=2");

  const Result<VerifyReport> itself = verify(varying_graph(), with);
  ASSERT_TRUE(itself.ok()) << itself.status().message();
  EXPECT_TRUE(itself->divergences.empty()) << itself->divergences[0].value;
}

TEST(sized_values, go_to_the_largest_shape_and_back) {
  // A dimension of two parts: rows of 2 * 3 in 4 * 5.
  const graph::ShapeParts parts = {{{0, 4}, {1, 5}}, {{graph::kNoForm, 2}}};
  const std::vector<int64_t> sizes = {2, 3};
  Tensor part(DType::kF32, {6, 2});
  for (int64_t i = 0; i < 12; ++i) part.set(i, static_cast<double>(i + 1));
  const Tensor whole = in_largest(part, {20, 2}, parts, sizes);
  EXPECT_EQ(whole.at(0), 1);
  EXPECT_EQ(whole.at(5), 6);
  EXPECT_TRUE(std::isnan(whole.at(6)));
  EXPECT_EQ(whole.at(10), 7);  // the second row of parts
  const Tensor back = part_of_run(whole, parts, sizes);
  ASSERT_EQ(back.shape(), part.shape());
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(back.at(i), part.at(i));
}

}  // namespace
}  // namespace hone
