#include "hone/session/limit_tasks.h"

#include <gtest/gtest.h>

#include "hone/ir/passes/limit_loops_testing.h"
#include "hone/session/limit_tasks_testing.h"
#include "hone/session/limited_model_testing.h"
#include "hone/space/space.h"

namespace hone {
namespace {

using testing::Limited;
using testing::limited;

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
    const Limited made = limited(model, mixes);
    ASSERT_GE(made.limits.size(), 3u);
    for (size_t c = 0; c < made.limits.size(); ++c) {
      EXPECT_EQ(made.limits[c].outputs.size(), 1u) << made.tasks.calls[c].name;
    }
  }
}

// The first of a space's points that are good by default whose algorithm is this one; the naive
// program where there is none.
schedule::Steps steps_by(const compute::Dag& dag, std::string_view algorithm,
                         const target::Target& target) {
  const Result<space::Space> space = space::Space::create(dag, target);
  if (!space.ok()) return {};
  for (const space::Point& point : space->default_points()) {
    if (space->algorithm(point.sketch) == algorithm) return space->steps(point);
  }
  return {};
}

// Winograd's transforms and products of a batch are in workspaces of a block of tiles.
TEST(limit_tasks, a_batch_has_its_limit_before_winograds_convolutions) {
  Rng rng(1);
  graph::TestModel model;
  model.open_input("x", {"batch", "8", "9", "10"})
      .constant("w", graph::random_tensor({8, 8, 3, 3}, rng))
      .constant("v", graph::random_tensor({16, 8, 3, 3}, rng))
      .node("Conv", {"x", "w"}, {"c"}, {{"pads", Shape{1, 1, 1, 1}}})
      .node("Relu", {"c"}, {"r"})
      .node("Conv", {"r", "v"}, {"y"}, {{"pads", Shape{1, 1, 1, 1}}})
      .output("y");
  const target::Target target = *target::find("x86-64-avx2");
  for (const char* algorithm : {"winograd_2", "winograd_4"}) {
    int found = 0;
    ScheduledCalls calls;
    calls.mixes = [](const graph::TaskCall&) { return true; };
    calls.lower = [&](const graph::TaskCall&, const compute::Dag& dag) {
      const schedule::Steps steps = steps_by(dag, algorithm, target);
      found += steps.empty() ? 0 : 1;
      return search::lower_schedule(dag, steps, target);
    };
    const Limited made = limited(model, calls, {});
    EXPECT_EQ(found, 2) << algorithm;
    for (size_t c = 0; c < made.limits.size(); ++c) {
      const graph::TaskCall& call = made.tasks.calls[c];
      ASSERT_EQ(made.limits[c].outputs.size(), 1u) << algorithm << " " << call.name;
      const search::ProgramPtr program = *calls.lower(call, call.dag);
      const ir::testing::LimitRun run =
          ir::testing::run_limited(*program, {made.limits[c].outputs, {3}}, 1);
      EXPECT_EQ(run.difference, "") << algorithm << " " << call.name;
      EXPECT_LE(run.after, run.before * 4 / 10) << algorithm << " " << call.name;
    }
  }
}

// A classifier of texts needs the state of the first token, which every run has.
TEST(limit_tasks, readers_of_the_first_row_need_no_rows_beyond_the_size) {
  Rng rng(1);
  graph::TestModel model = self_attention_nodes("seq", 16, rng);
  model.constant("zero", graph::ints({0}))
      .constant("w1", graph::random_tensor({16, 32}, rng))
      .constant("w2", graph::random_tensor({32, 4}, rng))
      .node("MatMul", {"y", "w1"}, {"h"})
      .node("Gather", {"h", "zero"}, {"first"})
      .node("MatMul", {"first", "w2"}, {"scores"})
      .output("scores");
  const Limited made = limited(model);
  int products = 0;
  for (size_t c = 0; c < made.limits.size(); ++c) {
    const graph::TaskCall& call = made.tasks.calls[c];
    const Shape& shape = call.dag.params.back().buffer->shape;
    if (!compute::kernel_class(call.dag).starts_with("gemm") || num_elements(shape) < 512) continue;
    ++products;
    EXPECT_EQ(made.limits[c].outputs.size(), 1u) << call.name;
  }
  EXPECT_GE(products, 4) << graph::describe(made.tasks);
}

// Constants that mean "to the end". Read as double, the largest integer is none any more, and a
// build with sanitizers ends there.
TEST(limit_tasks, the_largest_integer_is_no_place) {
  constexpr int64_t kEnd = INT64_MAX;
  for (const auto& ends : {graph::ints({0, kEnd, 1, 2}), graph::ints({kEnd, kEnd, kEnd, kEnd})}) {
    graph::TestModel model;
    model.open_input("x", {"seq", "4"})
        .constant("ends", ends)
        .node("Cast", {"x"}, {"i"}, {{"to", static_cast<int64_t>(DType::kI64)}})
        .node("Min", {"i", "ends"}, {"m"})
        .node("Cast", {"m"}, {"y"}, {{"to", static_cast<int64_t>(DType::kF32)}})
        .output("y");
    const Limited made = limited(model);
    ASSERT_EQ(made.limits.size(), 1u) << graph::describe(made.tasks);
    EXPECT_EQ(made.limits[0].outputs.size(), 1u);
  }
}

// A net of two layers over a sequence whose length is open, with all of its results.
graph::TestModel recurrent(const std::string& type, const std::string& direction, bool lengths) {
  const int64_t gates = type == "LSTM" ? 4 : type == "GRU" ? 3 : 1, hidden = 8;
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  Rng rng(1);
  graph::TestModel model;
  model.open_input("x0", {"seq", "2", "8"});
  if (lengths) model.input("lengths", {2}, DType::kI32);
  for (int64_t layer = 0; layer < 2; ++layer) {
    const auto name = [&](const char* text) { return fmt::format("{}{}", text, layer); };
    std::vector<std::string> results = {name("y"), name("h")};
    if (type == "LSTM") results.push_back(name("c"));
    const int64_t inputs = layer == 0 ? 8 : directions * hidden;
    model.constant(name("w"), graph::random_tensor({directions, gates * hidden, inputs}, rng))
        .constant(name("r"), graph::random_tensor({directions, gates * hidden, hidden}, rng))
        .constant(name("b"), graph::random_tensor({directions, 2 * gates * hidden}, rng))
        .constant(name("shape"), graph::ints({0, 0, -1}))
        .node(type, {name("x"), name("w"), name("r"), name("b"), lengths ? "lengths" : ""}, results,
              {{"hidden_size", hidden}, {"direction", direction}})
        .node("Transpose", {name("y")}, {name("t")}, {{"perm", Shape{0, 2, 1, 3}}})
        .node("Reshape", {name("t"), name("shape")}, {fmt::format("x{}", layer + 1)});
    for (size_t i = 1; i < results.size(); ++i) model.output(results[i]);
  }
  model.output("x2");
  return model;
}

void expect_steps_left_out(const std::string& type, const std::string& direction, bool lengths) {
  constexpr int64_t kMost = 6;
  SCOPED_TRACE(fmt::format("{} {} {}", type, direction, lengths));
  const Limited made =
      limited(recurrent(type, direction, lengths), false, {{"seq", {{1, kMost, ""}}}});
  // The number of calls in a run of so many steps.
  const auto number = [&](int64_t steps) {
    return std::ranges::count_if(made.runs,
                                 [&](const auto& run) { return !run || run->least <= steps; });
  };
  const auto of_step = number(2) - number(1);
  EXPECT_GE(of_step, direction == "bidirectional" ? 8 : 4);
  // All others are a few, whatever the number of steps.
  EXPECT_EQ(number(kMost), std::ssize(made.runs));
  for (int64_t steps = 1; steps < kMost - 1; ++steps)
    EXPECT_EQ(number(steps + 1) - number(steps), of_step) << steps;
  // The last step hands no state on, so it may be one call in place of two.
  const auto of_last = number(kMost) - number(kMost - 1);
  EXPECT_LE(of_last, of_step);
  EXPECT_GE(of_last * 2, of_step);
  EXPECT_LE(number(1), of_step + (direction == "bidirectional" ? 50 : 30));
}

TEST(limit_tasks, steps_of_recurrent_nets_behind_the_end_of_a_sequence_are_left_out) {
  for (const std::string type : {"LSTM", "GRU", "RNN"}) {
    for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
      for (const bool lengths : {false, true}) expect_steps_left_out(type, direction, lengths);
    }
  }
}

// The product of all inputs with the weights, and all that is computed of steps together.
TEST(limit_tasks, what_recurrent_nets_compute_of_all_steps_ends_at_the_last_one) {
  for (const std::string direction : {"forward", "bidirectional"}) {
    const Limited made =
        limited(recurrent("LSTM", direction, false), false, {{"seq", {{1, 12, ""}}}});
    int products = 0, reversals = 0;
    for (size_t c = 0; c < made.limits.size(); ++c) {
      const graph::TaskCall& call = made.tasks.calls[c];
      const Shape& shape = call.dag.params.back().buffer->shape;
      const std::string kind = compute::kernel_class(call.dag);
      const bool is_reversal = kind.find("reverse_steps") != std::string::npos;
      if (!is_reversal && (!kind.starts_with("gemm") || num_elements(shape) < 12 * 2 * 32))
        continue;
      ++(is_reversal ? reversals : products);
      EXPECT_EQ(made.limits[c].outputs.size(), 1u) << call.name;
    }
    EXPECT_EQ(products, direction == "forward" ? 2 : 4) << graph::describe(made.tasks);
    EXPECT_EQ(reversals, direction == "forward" ? 0 : 4) << graph::describe(made.tasks);
  }
}

TEST(limit_tasks, attention_ends_at_its_keys) {
  Rng rng(1);
  const graph::TestModel model = self_attention("seq", 16, rng);
  const Limited made = limited(model);
  int ends = 0, products = 0;
  for (size_t c = 0; c < made.limits.size(); ++c) {
    const graph::TaskCall& call = made.tasks.calls[c];
    if (!made.limits[c].ends.empty()) ends += static_cast<int>(made.limits[c].ends.size());
    const bool is_product = compute::kernel_class(call.dag).starts_with("gemm");
    if (is_product && !made.limits[c].outputs.empty()) ++products;
  }
  EXPECT_GE(ends, 3) << graph::describe(made.tasks);
  EXPECT_GE(products, 2) << graph::describe(made.tasks);
  const LimitedTasks split = split_groups(made.tasks, {made.limits, made.runs, made.sizes});
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
