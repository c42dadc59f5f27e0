// Every task that the compiler makes of operators has a schedule for GPUs, which computes what the
// naive program does.
#include <gtest/gtest.h>

#include <functional>

#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"
#include "hone/space/rules/gpu/gpu_testing.h"

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
