// Machine code of the search space (backend/cpu/space_code_testing.h) for the tasks that the
// compiler makes of operators: with its layouts, borders and copies.
#include <gtest/gtest.h>

#include <algorithm>

#include "hone/backend/cpu/space_code_testing.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

using backend::cpu::check_family;
using backend::cpu::Extents;

// The one of the model's tasks with the most operations, or of those with none the last.
compute::Dag main_task(const TestModel& model) {
  Graph graph = model.graph();
  const Status optimized = optimize(graph);
  HONE_ASSERT(optimized.ok(), optimized.message().c_str());
  const Result<TaskList> tasks = extract_tasks(graph);
  HONE_ASSERT(tasks.ok() && !tasks->calls.empty(), "a model has tasks");
  const TaskCall* best = &tasks->calls.front();
  for (const TaskCall& call : tasks->calls) {
    if (compute::flops(call.dag) >= compute::flops(best->dag)) best = &call;
  }
  return best->dag;
}

Tensor weights(const Shape& shape) {
  Rng rng(1);
  return random_tensor(shape, rng);
}

struct Window {
  Shape results, taps;  // results along each dimension with stride 1 (or data, if transposed)
  int64_t in = 1, out = 1;
  int64_t group = 1, stride = 1, dilation = 1;
  bool transposed = false;
};

compute::Dag convolution(const Window& w) {
  const size_t rank = w.results.size();
  Shape data = {1, w.in}, weight = {w.out, w.in / w.group};
  if (w.transposed) weight = {w.in, w.out / w.group};
  Shape pads;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t span = (w.taps[d] - 1) * w.dilation;
    data.push_back(w.results[d]);
    weight.push_back(w.taps[d]);
    pads.push_back(w.transposed ? 0 : span / 2);
  }
  for (size_t d = 0; d < rank; ++d)
    pads.push_back(w.transposed ? 0 : (w.taps[d] - 1) * w.dilation - pads[d]);
  TestModel model;
  model.input("x", data).constant("w", weights(weight));
  model.node(w.transposed ? "ConvTranspose" : "Conv", {"x", "w"}, {"y"},
             {{"kernel_shape", w.taps},
              {"strides", Shape(rank, w.stride)},
              {"dilations", Shape(rank, w.dilation)},
              {"pads", pads},
              {"group", w.group}});
  return main_task(model.node("Relu", {"y"}, {"z"}).output("z"));
}

TEST(task_code, batched_products) {
  check_family({4,
                5'000,
                [](const Extents& e) {
                  TestModel model;
                  model.input("a", {e[0], e[1], e[2]}).input("b", {e[0], e[2], e[3]});
                  return main_task(model.node("MatMul", {"a", "b"}, {"y"}).output("y"));
                },
                {"direct.0 mask", "direct.0 peel"}});
}

// Either operand's columns are the sum, or both's.
TEST(task_code, transposed_products) {
  for (const auto& [a, b] : {std::pair{0, 1}, {1, 0}, {1, 1}}) {
    check_family({3,
                  4'000,
                  [turn_a = int64_t{a}, turn_b = int64_t{b}](const Extents& e) {
                    TestModel model;
                    model.input("a", turn_a != 0 ? Shape{e[2], e[0]} : Shape{e[0], e[2]});
                    model.input("b", turn_b != 0 ? Shape{e[1], e[2]} : Shape{e[2], e[1]});
                    model.node("Gemm", {"a", "b"}, {"y"}, {{"transA", turn_a}, {"transB", turn_b}});
                    return main_task(model.output("y"));
                  },
                  {"direct.0 mask", "direct.0 peel"}});
  }
}

TEST(task_code, grouped_convolutions) {
  check_family({4,
                1'000,
                [](const Extents& e) {
                  return convolution({.results = {e[0], e[1]},
                                      .taps = {3, 3},
                                      .in = 3 * e[2],
                                      .out = 3 * e[3],
                                      .group = 3});
                },
                {"direct.0 mask", "direct.0 peel"}});
}

// Sixteen groups, which lie innermost.
TEST(task_code, groups_of_few_channels) {
  check_family({4,
                1'000,
                [](const Extents& e) {
                  return convolution({.results = {e[0], e[1]},
                                      .taps = {3, 3},
                                      .in = 16 * (1 + e[2] % 4),
                                      .out = 16 * (1 + e[3] % 2),
                                      .group = 16,
                                      .stride = 1 + e[2] % 2});
                },
                {"direct.0 mask", "direct.0 peel"}});
}

// Channels as rows of columns, which change places, in plain order and with the channels last.
TEST(task_code, shuffled_channels) {
  for (const bool last : {false, true}) {
    check_family({3,
                  10'000,
                  [last](const Extents& e) {
                    TestModel model;
                    const Shape data = {1, e[0] * e[1], e[2], 3};
                    model.input("x", data).constant("whole", ints(data));
                    model.constant("parts", ints({1, e[0], e[1], e[2], 3}));
                    // A pooling of one point wants its data with the channels last.
                    if (last) model.node("MaxPool", {"x"}, {"p"}, {{"kernel_shape", Shape{1, 1}}});
                    model.node("Reshape", {last ? "p" : "x", "parts"}, {"r"});
                    model.node("Transpose", {"r"}, {"t"}, {{"perm", Shape{0, 2, 1, 3, 4}}});
                    model.node("Reshape", {"t", "whole"}, {"y"}).output("y");
                    return main_task(model);
                  },
                  {"direct.0"}});
  }
}

TEST(task_code, dilated_convolutions) {
  check_family(
      {4,
       2'000,
       [](const Extents& e) {
         return convolution(
             {.results = {e[0], e[1]}, .taps = {3, 3}, .in = e[2], .out = e[3], .dilation = 2});
       },
       {"direct.0 mask", "direct.0 peel"}});
}

TEST(task_code, convolutions_in_one_dimension) {
  check_family({3,
                5'000,
                [](const Extents& e) {
                  return convolution({.results = {e[0]}, .taps = {3}, .in = e[1], .out = e[2]});
                },
                {"direct.0 mask", "direct.0 peel", "winograd_2.0 mask", "winograd_2.0 peel",
                 "winograd_4.0 mask", "winograd_4.0 peel"}});
}

TEST(task_code, convolutions_in_three_dimensions) {
  check_family({4,
                1'000,
                [](const Extents& e) {
                  return convolution({.results = {e[0], std::min<int64_t>(e[1], 7), 5},
                                      .taps = {2, 3, 3},
                                      .in = e[2],
                                      .out = e[3]});
                },
                {"direct.0 mask", "direct.0 peel"}});
}

TEST(task_code, transposed_convolutions) {
  for (const int64_t stride : {1, 2}) {
    check_family({4,
                  stride == 1 ? 2'000 : 1'000,
                  [stride](const Extents& e) {
                    return convolution({.results = {e[0], e[1]},
                                        .taps = {3, 3},
                                        .in = e[2],
                                        .out = e[3],
                                        .stride = stride,
                                        .transposed = true});
                  },
                  {"direct.0 mask", "direct.0 peel", "winograd_2.0 mask", "winograd_2.0 peel",
                   "winograd_4.0 mask", "winograd_4.0 peel"}});
  }
}

// These images are higher than wide, and the stride is 2.
TEST(task_code, depthwise_convolutions_of_5x5_and_7x7) {
  for (const int64_t taps : {5, 7}) {
    check_family({3,
                  1'000,
                  [taps](const Extents& e) {
                    return convolution({.results = {e[0], e[1]},
                                        .taps = {taps, taps},
                                        .in = e[2],
                                        .out = e[2],
                                        .group = e[2],
                                        .stride = e[0] > e[1] ? 2 : 1});
                  },
                  {"direct.0 mask", "direct.0 peel"}});
  }
}

TEST(task_code, layer_normalization) {
  check_family({2,
                10'000,
                [](const Extents& e) {
                  TestModel model;
                  model.input("x", {e[0], e[1]}).constant("s", weights({e[1]}));
                  model.constant("b", weights({e[1]}));
                  model.node("LayerNormalization", {"x", "s", "b"}, {"y"});
                  return main_task(model.output("y"));
                },
                {"direct.0"},
                false});
}

TEST(task_code, rms_normalization) {
  check_family({2,
                10'000,
                [](const Extents& e) {
                  TestModel model(23);
                  model.input("x", {e[0], e[1]}).constant("s", weights({e[1]}));
                  model.node("RMSNormalization", {"x", "s"}, {"y"});
                  return main_task(model.output("y"));
                },
                {"direct.0"},
                false});
}

TEST(task_code, resizes) {
  for (const char* mode : {"nearest", "linear"}) {
    check_family({3,
                  3'000,
                  [mode](const Extents& e) {
                    TestModel model;
                    model.input("x", {1, e[0], e[1], e[2]});
                    model.constant("s", floats({4}, {1, 1, 2, 1.5F}));
                    model.node("Resize", {"x", "", "s"}, {"y"}, {{"mode", std::string(mode)}});
                    return main_task(model.output("y"));
                  },
                  {"direct.0"},
                  false});
  }
}

TEST(task_code, tops_of_rows) {
  check_family({2,
                5'000,
                [](const Extents& e) {
                  TestModel model;
                  model.input("x", {e[0], e[1]}).constant("k", ints({(e[1] + 1) / 2}));
                  model.node("TopK", {"x", "k"}, {"y", "i"}).output("y");
                  return main_task(model.output("i"));
                },
                {"direct.0"},
                false});
}

// Orders of dimensions: where the last one moves, in tiles, too.
TEST(task_code, transposes) {
  for (const Shape& order : {Shape{1, 0, 2}, Shape{0, 2, 1}, Shape{2, 1, 0}}) {
    const std::vector<std::string> tiles = {"unroll(", ", test)"};
    check_family({3,
                  10'000,
                  [&order](const Extents& e) {
                    TestModel model;
                    model.input("x", {e[0], e[1], e[2]});
                    model.node("Transpose", {"x"}, {"y"}, {{"perm", order}});
                    return main_task(model.output("y"));
                  },
                  {"direct.0"},
                  true,
                  false,
                  order[2] == 2 ? std::vector<std::string>() : tiles});
  }
}

// Parts of one buffer, in plain order.
TEST(task_code, concatenations) {
  for (const int64_t axis : {0, 1, 2}) {
    check_family({3,
                  10'000,
                  [axis](const Extents& e) {
                    TestModel model;
                    Shape other = {e[0], e[1], e[2]};
                    model.input("x", other);
                    other[static_cast<size_t>(axis)] = 5;
                    model.input("o", other);
                    model.node("Concat", {"x", "o"}, {"y"}, {{"axis", axis}});
                    return main_task(model.output("y"));
                  },
                  {"direct.0"}});
  }
}

// Rows so few and long that threads share each: also cut into parts.
TEST(task_code, few_long_rows) {
  const auto rows = [](const Extents& e) { return 1 + e[0] % 3; };
  const auto family = [&](const std::function<compute::Dag(const Extents&)>& make,
                          const std::string& part) {
    check_family({2, 50'000, make, {}, false, false, {part}});
  };
  for (const char* const op : {"Softmax", "LogSoftmax"}) {
    family(
        [&](const Extents& e) {
          TestModel model;
          model.input("x", {rows(e), 32768 + e[1]});
          return main_task(model.node(op, {"x"}, {"y"}, {{"axis", -1}}).output("y"));
        },
        "rfactor(softmax_sum");
  }
  family(
      [&](const Extents& e) {
        TestModel model;
        model.input("x", {rows(e), 65536 + e[1]});
        return main_task(model.node("ArgMax", {"x"}, {"y"}, {{"axis", 1}}).output("y"));
      },
      "rfactor(place");
  family(
      [&](const Extents& e) {
        TestModel model;
        model.input("x", {rows(e), 262144 + e[1]}).constant("axis", ints({1}));
        model.node("CumSum", {"x", "axis"}, {"y"},
                   {{"reverse", e[1] % 2}, {"exclusive", e[1] / 2 % 2}});
        return main_task(model.output("y"));
      },
      "rfactor(cum_sum");
  for (const char* const op : {"ReduceMax", "ReduceMin", "ReduceLogSumExp"}) {
    family(
        [&](const Extents& e) {
          TestModel model;
          model.input("x", {rows(e), 65536 + e[1]});
          return main_task(model.node(op, {"x"}, {"y"}, {{"keepdims", 0}}).output("y"));
        },
        ".rf");
  }
  family(
      [&](const Extents& e) {
        const int64_t n = 65536 + e[1];
        TestModel model;
        model.input("x", {rows(e), n}).constant("s", weights({n})).constant("b", weights({n}));
        return main_task(
            model.node("LayerNormalization", {"x", "s", "b"}, {"y"}, {{"axis", -1}}).output("y"));
      },
      "rfactor(variance");
}

// Running sums and products, several rows at once: step by step and in vectors of steps.
TEST(task_code, scans_along_rows) {
  const auto family = [](const char* op, DType type, int64_t exclusive, int64_t reverse) {
    check_family(
        {3,
         10'000,
         [=](const Extents& e) {
           TestModel model(26);  // CumProd's first version
           model.input("x", {e[0], e[1], e[2]}, type).constant("axis", ints({2}));
           model.node(op, {"x", "axis"}, {"y"}, {{"exclusive", exclusive}, {"reverse", reverse}});
           return main_task(model.output("y"));
         },
         {"direct.0"},
         type == DType::kF32,
         false,
         {"vectorize(", "sink("}});
  };
  for (const int64_t exclusive : {0, 1}) {
    for (const int64_t reverse : {0, 1}) family("CumSum", DType::kF32, exclusive, reverse);
  }
  for (const DType type : {DType::kF64, DType::kI32, DType::kI64, DType::kU32, DType::kF16})
    family("CumSum", type, 0, 0);
  family("CumSum", DType::kI64, 1, 1);
  family("CumProd", DType::kF32, 0, 0);
  family("CumProd", DType::kF32, 1, 1);
}

// Value and place of each column in a lane; of tiles that are whole without a test.
TEST(task_code, extremes_of_columns) {
  for (const DType type : {DType::kF32, DType::kI32, DType::kI64}) {
    for (const int64_t last : {0, 1}) {
      check_family({3,
                    10'000,
                    [=](const Extents& e) {
                      TestModel model;
                      model.input("x", {e[0], e[1], 1 + e[2]}, type);
                      model.node(last ? "ArgMax" : "ArgMin", {"x"}, {"y"},
                                 {{"axis", int64_t{1}}, {"select_last_index", last}});
                      return main_task(model.output("y"));
                    },
                    {"direct.0"},
                    type == DType::kF32,
                    false,
                    {", test)", ", peel)"}});
    }
  }
}

}  // namespace
}  // namespace hone::graph
