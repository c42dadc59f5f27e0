// Every task that the compiler makes of operators has a schedule for GPUs, which computes what the
// naive program does.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "hone/graph/import_onnx.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"
#include "hone/space/rules/gpu/gpu_testing.h"
#include "hone/space/rules/roots.h"

namespace hone::graph {
namespace {

Tensor weights(const Shape& shape) {
  Rng rng(1);
  return random_tensor(shape, rng);
}

// Runs the default points of all tasks of a model, and some others.
void expect_tasks(const TestModel& model, int samples = 1) {
  Graph graph = model.graph();
  const Status optimized = optimize(graph);
  ASSERT_TRUE(optimized.ok()) << optimized.message();
  const Result<TaskList> tasks = extract_tasks(graph);
  ASSERT_TRUE(tasks.ok()) << tasks.status().message();
  ASSERT_FALSE(tasks->calls.empty());
  for (const TaskCall& call : tasks->calls) space::expect_points(call.dag, samples, 1e-4);
}

TEST(gpu_task, products) {
  TestModel gemm;
  gemm.input("a", {13, 33}).constant("b", weights({17, 33})).constant("c", weights({17}));
  gemm.node("Gemm", {"a", "b", "c"}, {"y"}, {{"transB", int64_t{1}}});
  expect_tasks(gemm.node("Relu", {"y"}, {"z"}).output("z"));
  TestModel batched;
  batched.input("a", {2, 3, 7, 13}).input("b", {2, 3, 13, 5});
  expect_tasks(batched.node("MatMul", {"a", "b"}, {"y"}).output("y"));
  TestModel vector;
  vector.input("a", {1, 97}).constant("b", weights({97, 31}));
  expect_tasks(vector.node("MatMul", {"a", "b"}, {"y"}).output("y"));
}

TestModel convolution(const char* op, const Shape& data, const Shape& weight, int64_t group,
                      int64_t stride, int64_t pad) {
  const size_t rank = data.size() - 2;
  TestModel model;
  model.input("x", data).constant("w", weights(weight));
  model.node(op, {"x", "w"}, {"y"},
             {{"strides", Shape(rank, stride)}, {"pads", Shape(2 * rank, pad)}, {"group", group}});
  model.node("Relu", {"y"}, {"z"}).output("z");
  return model;
}

TEST(gpu_task, convolutions) {
  expect_tasks(convolution("Conv", {1, 5, 9, 7}, {12, 5, 3, 3}, 1, 1, 1), 3);
  expect_tasks(convolution("Conv", {2, 8, 9, 7}, {4, 8, 1, 1}, 1, 1, 0));
  expect_tasks(convolution("Conv", {1, 3, 17, 13}, {8, 3, 7, 7}, 1, 2, 3), 3);
  expect_tasks(convolution("Conv", {1, 12, 7, 7}, {12, 1, 3, 3}, 12, 1, 1), 3);
  expect_tasks(convolution("Conv", {1, 12, 7, 7}, {9, 4, 3, 3}, 3, 2, 1), 3);
  expect_tasks(convolution("Conv", {1, 3, 31}, {5, 3, 3}, 1, 1, 1));
  expect_tasks(convolution("Conv", {1, 3, 5, 4, 3}, {5, 3, 3, 2, 1}, 1, 1, 1));
  expect_tasks(convolution("ConvTranspose", {1, 5, 4, 3}, {5, 3, 3, 3}, 1, 1, 0));
  expect_tasks(convolution("ConvTranspose", {1, 5, 4, 3}, {5, 3, 3, 3}, 1, 2, 0));
}

TEST(gpu_task, pooling) {
  for (const char* op : {"MaxPool", "AveragePool"}) {
    TestModel model;
    model.input("x", {1, 5, 9, 7});
    model.node(
        op, {"x"}, {"y"},
        {{"kernel_shape", Shape{3, 3}}, {"strides", Shape{2, 2}}, {"pads", Shape{1, 1, 1, 1}}});
    expect_tasks(model.output("y"));
  }
  TestModel global;
  expect_tasks(global.input("x", {2, 5, 9, 7}).node("GlobalAveragePool", {"x"}, {"y"}).output("y"));
}

TEST(gpu_task, rows) {
  for (const char* op : {"Softmax", "LogSoftmax", "ReduceMax", "ReduceSum", "ReduceMean",
                         "ReduceL2", "ReduceLogSumExp", "ArgMax", "ArgMin"}) {
    TestModel model(11);
    expect_tasks(model.input("x", {7, 33}).node(op, {"x"}, {"y"}).output("y"));
    TestModel columns(11);
    columns.input("x", {33, 7});
    expect_tasks(columns.node("Transpose", {"x"}, {"t"}).node(op, {"t"}, {"y"}).output("y"));
  }
  for (const char* op : {"ReduceMax", "ReduceSum", "ReduceLogSumExp"}) {
    TestModel scalar(11);
    expect_tasks(scalar.input("x", {13}).node(op, {"x"}, {"y"}).output("y"));
  }
  TestModel layer;
  layer.input("x", {7, 33}).constant("s", weights({33})).constant("b", weights({33}));
  expect_tasks(layer.node("LayerNormalization", {"x", "s", "b"}, {"y"}).output("y"));
  TestModel instance;
  instance.input("x", {2, 3, 5, 4}).constant("s", weights({3})).constant("b", weights({3}));
  expect_tasks(instance.node("InstanceNormalization", {"x", "s", "b"}, {"y"}).output("y"));
}

TEST(gpu_task, movement) {
  TestModel transpose;
  transpose.input("x", {5, 7, 4});
  expect_tasks(transpose.node("Transpose", {"x"}, {"y"}, {{"perm", Shape{2, 0, 1}}}).output("y"));
  TestModel concat;
  concat.input("x", {5, 7}).input("o", {5, 4});
  expect_tasks(concat.node("Concat", {"x", "o"}, {"y"}, {{"axis", int64_t{1}}}).output("y"));
  TestModel gather;
  gather.input("x", {9, 5}).input("i", {4}, DType::kI64);
  expect_tasks(gather.node("Gather", {"x", "i"}, {"y"}).output("y"));
  TestModel scatter;
  scatter.input("x", {9, 5}).constant("i", ints({3, 1})).input("u", {2, 5});
  scatter.constant("shape", ints({2, 1})).node("Reshape", {"i", "shape"}, {"j"});
  expect_tasks(scatter.node("ScatterND", {"x", "j", "u"}, {"y"}).output("y"));
  TestModel pad;
  pad.input("x", {5, 4}).constant("p", ints({1, 0, 2, 3}));
  expect_tasks(pad.node("Pad", {"x", "p"}, {"y"}).output("y"));
}

TEST(gpu_task, scans_sorts_and_recurrences) {
  TestModel scan;
  scan.input("x", {5, 13}).constant("axis", ints({1}));
  expect_tasks(scan.node("CumSum", {"x", "axis"}, {"y"}).output("y"));
  TestModel top;
  top.input("x", {5, 13}).constant("k", ints({4}));
  expect_tasks(top.node("TopK", {"x", "k"}, {"y", "i"}).output("y").output("i"));
  TestModel lstm;
  lstm.input("x", {3, 2, 5}).constant("w", weights({1, 16, 5})).constant("r", weights({1, 16, 4}));
  lstm.node("LSTM", {"x", "w", "r"}, {"y"}, {{"hidden_size", int64_t{4}}});
  expect_tasks(lstm.output("y"));
}

// Calls f with the default candidate of each task of a model.
void for_defaults(const TestModel& model, const std::function<void(const space::Candidate&)>& f) {
  Graph graph = model.graph();
  ASSERT_TRUE(optimize(graph).ok());
  const Result<TaskList> tasks = extract_tasks(graph);
  ASSERT_TRUE(tasks.ok()) << tasks.status().message();
  for (const TaskCall& call : tasks->calls) {
    const Result<space::Space> space = space::Space::create(call.dag, space::small_gpu());
    ASSERT_TRUE(space.ok()) << space.status().message();
    const Result<space::Candidate> candidate = space->instantiate(space->default_point());
    ASSERT_TRUE(candidate.ok()) << candidate.status().message();
    f(*candidate);
  }
}

void expect_default_step(const TestModel& model, std::string_view step) {
  std::string all;
  for_defaults(model, [&](const space::Candidate& candidate) {
    all += compute::describe(*candidate.dag) + ":\n" + schedule::to_string(candidate.steps);
  });
  EXPECT_NE(all.find(step), std::string::npos) << all;
}

constexpr int64_t kOdd[] = {1, 2, 3, 7, 13, 17, 31, 33, 97};

TestModel gather(const char* op, const Shape& data, const Shape& indices, int64_t axis) {
  TestModel model;
  model.input("x", data).input("i", indices, DType::kI64);
  model.node(op, {"x", "i"}, {"y"}, {{"axis", axis}});
  model.output("y");
  return model;
}

// Threads share the rows that are gathered, by vectors where these divide a row.
TEST(gpu_task, gathers) {
  for (const int64_t n : kOdd) {
    expect_tasks(gather("Gather", {9, n}, {n}, 0), 2);
    expect_tasks(gather("Gather", {3, n, 8}, {2, 3}, 1), 2);
    expect_tasks(gather("GatherElements", {n, 5}, {n, 3}, 1), 2);
    expect_tasks(gather("GatherElements", {5, n}, {3, n}, 0), 2);
    TestModel nd;
    nd.input("x", {4, n, 5}).input("i", {n, 2}, DType::kI64);
    expect_tasks(nd.node("GatherND", {"x", "i"}, {"y"}).output("y"), 2);
  }
  expect_default_step(gather("Gather", {50, 64}, {40}, 0), "lift(gather, [i1], 4)");
  expect_default_step(gather("Gather", {50, 6}, {700}, 0), "lift(gather, [i1], 2)");
  expect_default_step(gather("Gather", {50, 7}, {40}, 0), "lift(gather, [i1], 1)");
}

TestModel scatter(const char* op, const Shape& data, const Shape& indices, const Shape& updates,
                  AttributeList attributes) {
  TestModel model(18);
  model.input("x", data).input("i", indices, DType::kI64).input("u", updates);
  model.node(op, {"x", "i", "u"}, {"y"}, std::move(attributes));
  model.output("y");
  return model;
}

// Operands are small integers, so that updates meet in many places, and the last one stays.
TEST(gpu_task, scatters) {
  for (const int64_t n : kOdd) {
    for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
      const AttributeList kind = {{"reduction", std::string(reduction)}};
      AttributeList along = kind;
      along.push_back({"axis", int64_t{1}});
      expect_tasks(scatter("ScatterND", {n, 5}, {3, 1}, {3, 5}, kind), 2);
      expect_tasks(scatter("ScatterND", {3, n, 2}, {7, 2}, {7, 2}, kind), 2);
      expect_tasks(scatter("ScatterElements", {3, n}, {2, 5}, {2, 5}, along), 2);
      expect_tasks(scatter("ScatterElements", {4, n, 3}, {4, n, 2}, {4, n, 2}, along), 2);
    }
    expect_tasks(scatter("ScatterND", {n, 3}, {5, 2}, {5}, {}), 2);
  }
  // Few updates of much: one of a cache of keys, and one of a row of it for each head.
  expect_default_step(scatter("ScatterND", {1, 2, 512, 8}, {1, 2, 1, 3}, {1, 2, 1, 8}, {}),
                      "split_updates(scatter_nd)");
  expect_default_step(scatter("ScatterElements", {1, 2, 512, 8}, {1, 2, 1, 8}, {1, 2, 1, 8},
                              {{"axis", int64_t{2}}}),
                      "split_updates(scatter_elements)");
}

TestModel first_of(const Shape& data, int64_t k, int64_t axis, bool largest, DType dtype) {
  TestModel model;
  model.input("x", data, dtype).constant("k", ints({k}));
  model.node("TopK", {"x", "k"}, {"v", "i"},
             {{"axis", axis}, {"largest", static_cast<int64_t>(largest)}});
  model.output("v").output("i");
  return model;
}

// The body selects from short rows by each of its algorithms: from the row as a whole, from the
// best of groups, and by a sort.
TEST(gpu_task, selections) {
  for (const int64_t n : kOdd) {
    for (const int64_t k : {int64_t{1}, (n + 2) / 3, n}) {
      expect_tasks(first_of({3, n}, k, 1, true, DType::kF32), 2);
      expect_tasks(first_of({n, 2}, k, 0, false, DType::kF32), 1);
    }
  }
  for (const DType type : {DType::kI32, DType::kI64, DType::kF64, DType::kF16, DType::kU8})
    expect_tasks(first_of({2, 70}, 9, 1, true, type), 2);
  expect_default_step(first_of({3, 97}, 5, 1, true, DType::kF32), "block_body(top_k, 32)");
}

// A stage of its own rounds the sum, and schedules name it, so that a product holds it.
TEST(gpu_task, results_of_half_types_are_rounded_by_a_stage_with_a_name) {
  TestModel model(17);
  model.input("a", {16, 32}, DType::kF16).input("b", {32, 16}, DType::kF16);
  Graph graph = model.node("MatMul", {"a", "b"}, {"y"}).output("y").graph();
  ASSERT_TRUE(optimize(graph, {.any_order = true, .widens_halves = false}).ok());
  const Result<TaskList> tasks = extract_tasks(graph);
  ASSERT_TRUE(tasks.ok()) << tasks.status().message();
  ASSERT_EQ(tasks->calls.size(), 1u);
  const compute::Dag& dag = tasks->calls[0].dag;
  ASSERT_EQ(dag.stages.size(), 2u);
  EXPECT_EQ(dag.stages[1].name, "cast");
  const std::vector<space::Root> roots = space::roots_of(schedule::initial_state(dag));
  ASSERT_EQ(roots.size(), 1u) << "one kernel";
  EXPECT_EQ(roots[0].stage, "cast");
}

// A GPU cannot leave steps out, and a branch that is dear is computed, too.
TEST(gpu_task, both_branches_of_an_if_are_computed) {
  TestModel model(17);
  model.input("x", {64, 128}).input("go", {}, DType::kBool).constant("w", weights({128, 128}));
  model.text(R"(graph { node { op_type: 'If' name: 'if' input: 'go' output: 'y'
      attribute { name: 'then_branch' type: GRAPH g { name: 't'
        node { op_type: 'MatMul' input: 'x' input: 'w' output: 'a' } output { name: 'a' } } }
      attribute { name: 'else_branch' type: GRAPH g { name: 'e'
        node { op_type: 'Neg' input: 'x' output: 'b' } output { name: 'b' } } } } })");
  const std::string bytes = model.output("y").bytes();
  for (const bool repeats : {true, false}) {
    ImportOptions options;
    options.repeats_steps = repeats;
    const Result<Graph> graph =
        import_onnx_bytes(bytes.data(), bytes.size(), "if.onnx", "", options);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const bool has_loop = std::any_of(graph->nodes.begin(), graph->nodes.end(),
                                      [](const Node& node) { return node.type == "hone.Loop"; });
    EXPECT_EQ(has_loop, repeats);
  }
}

// Long rows, of which a block finds the bound first.
TEST(gpu_task, selections_of_long_rows) {
  for (const int64_t n : {257, 517, 1031}) {
    for (const int64_t k : {1, 100}) expect_tasks(first_of({2, n}, k, 1, true, DType::kF32));
    expect_tasks(first_of({1, n}, 5, 1, false, DType::kI32));
  }
  expect_tasks(first_of({1, 600}, 600, 1, true, DType::kF32), 2);
  expect_tasks(first_of({1, 600}, 290, 1, false, DType::kF64), 1);
  TestModel row;
  row.input("x", {700}).constant("k", ints({6}));
  expect_tasks(row.node("TopK", {"x", "k"}, {"", "i"}).output("i"));
}

// Sums that end before their element, from the last one on, and products, by blocks.
TEST(gpu_task, scans_by_blocks) {
  for (const int64_t n : {1, 13, 33, 70, 97, 600}) {
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        TestModel model;
        model.input("x", {3, n}).constant("axis", ints({1}));
        model.node("CumSum", {"x", "axis"}, {"y"},
                   {{"exclusive", static_cast<int64_t>(exclusive)},
                    {"reverse", static_cast<int64_t>(reverse)}});
        expect_tasks(model.output("y"), 2);
      }
    }
    TestModel columns;
    columns.input("x", {n, 5}, DType::kI32).constant("axis", ints({0}));
    expect_tasks(columns.node("CumSum", {"x", "axis"}, {"y"}).output("y"));
  }
}

// Scores of queries and keys, scaled, with what is added to them, and their softmax times values.
TestModel attention(const Shape& queries, const Shape& keys, const Shape& mask) {
  TestModel model;
  model.input("q", queries).input("k", keys).input("v", keys);
  const std::vector<int64_t> swap = queries.size() == 3 ? Shape{0, 2, 1} : Shape{0, 1, 3, 2};
  model.node("Transpose", {"k"}, {"kt"}, {{"perm", swap}}).node("MatMul", {"q", "kt"}, {"s"});
  model.constant("c", weights({1})).node("Mul", {"s", "c"}, {"scaled"});
  const char* scores = "scaled";
  if (!mask.empty()) {
    model.input("mask", mask).node("Add", {"scaled", "mask"}, {"masked"});
    scores = "masked";
  }
  model.node("Softmax", {scores}, {"p"}, {{"axis", int64_t{-1}}});
  model.node("MatMul", {"p", "v"}, {"y"}).output("y");
  return model;
}

TEST(gpu_task, attention) {
  expect_tasks(attention({2, 7, 8}, {2, 13, 8}, {}), 3);
  expect_tasks(attention({1, 3, 33, 16}, {1, 3, 17, 16}, {1, 1, 1, 17}), 3);
  expect_tasks(attention({2, 2, 13, 5}, {2, 2, 31, 5}, {2, 1, 13, 31}), 3);
  expect_tasks(attention({2, 2, 1, 8}, {2, 2, 31, 8}, {1, 1, 1, 31}), 3);
}

}  // namespace
}  // namespace hone::graph
