// Models whose shapes vary, as code of this machine: what a run leaves out, NaN here as all memory
// at first, never reaches its results.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "hone/graph/import_onnx.h"
#include "hone/graph/size_values.h"
#include "hone/session/compile_graph.h"
#include "hone/session/limited_model_testing.h"
#include "hone/session/step_run.h"
#include "hone/session/write_model.h"

namespace hone {
namespace {

graph::Graph imported(const graph::TestModel& model, const graph::ImportOptions& options) {
  const std::string bytes = model.bytes();
  Result<graph::Graph> graph =
      graph::import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "", options);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

std::vector<int> weights_of(const artifact::ArtifactStep& step) {
  std::vector<int> weights;
  for (const artifact::ArtifactArgument& argument : step.arguments)
    if (argument.kind == artifact::ArgumentKind::kWeight) weights.push_back(argument.index);
  return weights;
}

// Expects steps for smaller sizes, which read the weights of those for the largest.
void expect_variants(const Assembly& assembly) {
  int variants = 0;
  for (size_t s = 1; s < assembly.spec.steps.size(); ++s) {
    if (assembly.calls[s] != assembly.calls[s - 1]) continue;
    const artifact::ArtifactStep &step = assembly.spec.steps[s],
                                 &other = assembly.spec.steps[s - 1];
    if (step.when.form < 0 || step.when.from == other.when.from) continue;  // another phase
    ++variants;
    EXPECT_EQ(weights_of(step), weights_of(other)) << step.name;
  }
  EXPECT_GT(variants, 0);
}

// Runs a model with one input and one output, whose first dimension is the only one that varies.
void check(const graph::TestModel& model, const Shape& row, int64_t most,
           const std::vector<int64_t>& sizes, bool has_variants = true) {
  CompileOptions options;
  options.records.use_db = false;
  options.target.threads = 2;
  const auto session = Session::open(options).value();
  ShapeRange ranges = {{1, most, "n"}};
  for (const int64_t extent : row) ranges.push_back({extent, extent, ""});
  const graph::Graph whole = imported(model, {.ranges = {{"x", ranges}}, .open_ranges = true});
  Untuned made = *make_untuned(*session, whole, options);
  const Assembly assembly = *assemble_model(made.model, made.schedules, options);
  bool limited = false;
  for (const artifact::ArtifactStep& step : assembly.spec.steps)
    limited = limited || step.limit.form >= 0;
  EXPECT_TRUE(limited);
  if (has_variants) expect_variants(assembly);
  StepRun run = *StepRun::create(assembly, 2);
  Rng rng(3);
  for (const int64_t n : sizes) {
    const Shape shape = whole.value(whole.inputs[0]).shape;
    Shape own = shape;
    own[0] = n;
    const Tensor x = graph::random_tensor(own, rng);
    Tensor large(DType::kF32, shape);
    for (int64_t i = 0; i < large.size(); ++i) large.set(i, i < x.size() ? x.at(i) : std::nan(""));
    Tensor numbers(DType::kI64, {graph::kMaxForms});
    const std::vector<int64_t> values = graph::sizes_of(whole.varying, {n});
    for (size_t f = 0; f < values.size(); ++f) numbers.as<int64_t>()[f] = values[f];
    const Tensor expected =
        graph::run_plainly(imported(model, {.shapes = {{"x", own}}}), std::vector<Tensor>{x})[0];
    Tensor found(DType::kF32, expected.shape());
    const std::vector<Tensor> inputs = {large, numbers};
    const Status ran = run.run(inputs, [&](int) {
      const graph::Graph& graph = made.model.graph;
      const int index = graph.value(graph.outputs[0]).storage.buffer;
      std::memcpy(found.data(), run.memory(graph.buffers[static_cast<size_t>(index)], index),
                  static_cast<size_t>(found.bytes()));
      return ok_status();
    });
    ASSERT_TRUE(ran.ok()) << ran.message();
    EXPECT_LE(graph::relative_error(found, expected), 1e-5) << "size " << n;
  }
}

TEST(limited_model, products_and_rows) {
  Rng rng(1);
  graph::TestModel model;
  model.open_input("x", {"n", "64"})
      .constant("v", graph::random_tensor({64, 256}, rng))
      .constant("w", graph::random_tensor({256, 64}, rng))
      .node("MatMul", {"x", "v"}, {"a"})
      .node("Softmax", {"a"}, {"s"}, {{"axis", int64_t{-1}}})
      .node("MatMul", {"s", "w"}, {"b"})
      .node("Relu", {"b"}, {"y"})
      .output("y");
  check(model, {64}, 200, {1, 7, 64, 199, 200});
}

// Rows of a sequence; the results of its steps and, added to them, those of the last one.
TEST(limited_model, recurrent_nets) {
  for (const auto& [type, gates] : {std::pair<std::string, int64_t>{"LSTM", 4}, {"GRU", 3}}) {
    SCOPED_TRACE(type);
    Rng rng(1);
    graph::TestModel model;
    model.open_input("x", {"n", "6"})
        .constant("one", graph::ints({1}))
        .constant("rows", graph::ints({-1, 16}))
        .constant("w", graph::random_tensor({2, gates * 8, 6}, rng))
        .constant("r", graph::random_tensor({2, gates * 8, 8}, rng))
        .node("Unsqueeze", {"x", "one"}, {"steps"})
        .node(type, {"steps", "w", "r"}, {"a", "h"},
              {{"direction", std::string("bidirectional")}, {"hidden_size", int64_t{8}}})
        .node("Add", {"a", "h"}, {"both"})
        .node("Reshape", {"both", "rows"}, {"y"})
        .output("y");
    check(model, {6}, 9, {1, 2, 5, 8, 9}, false);
  }
}

TEST(limited_model, attention) {
  Rng rng(1);
  const graph::TestModel model = self_attention("n", 32, rng);
  check(model, {32}, 160, {1, 5, 64, 100, 160});
}

// By Winograd's algorithm, which computes sums of rows.
TEST(limited_model, convolutions) {
  Rng rng(2);
  graph::TestModel model;
  model.open_input("x", {"n", "64", "7", "7"})
      .constant("v", graph::random_tensor({64, 64, 3, 3}, rng))
      .constant("w", graph::random_tensor({64, 64, 1, 1}, rng))
      .node("Conv", {"x", "v"}, {"a"}, {{"pads", Shape{1, 1, 1, 1}}})
      .node("Relu", {"a"}, {"b"})
      .node("Conv", {"b", "w"}, {"y"})
      .output("y");
  check(model, {64, 7, 7}, 8, {1, 2, 5});
}

}  // namespace
}  // namespace hone
