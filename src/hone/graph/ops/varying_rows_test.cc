// Operators that compute rows of values whose shape depends on data: they give what they give for
// these rows alone.
#include <gtest/gtest.h>

#include "hone/graph/reference_testing.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

// Functions of a test add nodes behind the rows "v", up to the result "y".
using Build = void (*)(TestModel&);

constexpr int64_t kRows = 5;

Tensor mask_of(const std::vector<int64_t>& chosen) {
  Tensor mask(DType::kBool, {kRows});
  for (const int64_t row : chosen) mask.set(row, 1);
  return mask;
}

Tensor rows_of(const Tensor& x, const std::vector<int64_t>& chosen) {
  Shape shape = x.shape();
  shape[0] = std::ssize(chosen);
  Tensor rows(DType::kF32, shape);
  const int64_t each = x.size() / kRows;
  for (int64_t i = 0; i < rows.size(); ++i)
    rows.set(i, x.at(chosen[static_cast<size_t>(i / each)] * each + i % each));
  return rows;
}

// Expects that the operator gives the same for rows that a run chooses of x [kRows, ...] and for
// these rows as an input.
void expect_same(const Shape& row, Build build) {
  Rng rng(7);
  Shape shape = {kRows};
  shape.insert(shape.end(), row.begin(), row.end());
  const Tensor x = random_tensor(shape, rng);
  TestModel decided(22);
  decided.input("mask", {kRows}, DType::kBool).input("x", shape);
  decided.node("Compress", {"x", "mask"}, {"v"}, {{"axis", int64_t{0}}});
  build(decided);
  const Graph graph = decided.output("y").graph();
  for (const std::vector<int64_t>& chosen : {std::vector<int64_t>{1, 2, 4}, {3}, {0, 1, 2, 3, 4}}) {
    TestModel fixed(22);
    shape[0] = std::ssize(chosen);
    fixed.input("v", shape);
    build(fixed);
    const Tensor expected = run_plainly(fixed.output("y").graph(), {rows_of(x, chosen)})[0];
    const Tensor found = run_optimized(graph, {mask_of(chosen), x})[0];
    EXPECT_EQ(found.shape(), expected.shape()) << chosen.size() << " rows";
    EXPECT_LT(relative_error(found, expected), 1e-5) << chosen.size() << " rows";
  }
}

Tensor numbers(const Shape& shape) {
  Rng rng(3);
  return random_tensor(shape, rng);
}

TEST(varying_rows, convolutions_and_pooling_of_pictures) {
  expect_same({2, 6, 6}, [](TestModel& m) {
    m.constant("w", numbers({3, 2, 3, 3})).node("Conv", {"v", "w"}, {"c"});
    m.node("MaxPool", {"c"}, {"p"}, {{"kernel_shape", Shape{2, 2}}});
    m.node("AveragePool", {"p"}, {"a"}, {{"kernel_shape", Shape{2, 2}}});
    m.node("GlobalAveragePool", {"a"}, {"y"});
  });
  expect_same({2, 3, 3}, [](TestModel& m) {
    m.constant("w", numbers({2, 3, 2, 2})).node("ConvTranspose", {"v", "w"}, {"y"});
  });
}

TEST(varying_rows, convolutions_and_pooling_along_what_data_decide) {
  expect_same({2, 3}, [](TestModel& m) {
    m.node("Transpose", {"v"}, {"t"}, {{"perm", Shape{2, 1, 0}}});
    m.constant("w", numbers({4, 2, 3}));
    m.node("Conv", {"t", "w"}, {"y"}, {{"pads", Shape{2, 1}}, {"strides", Shape{2}}});
  });
  for (const char* type : {"max", "mean", "mean with padding"}) {
    static std::string kind;
    kind = type;
    expect_same({2, 3}, [](TestModel& m) {
      m.node("Transpose", {"v"}, {"t"}, {{"perm", Shape{2, 1, 0}}});
      const AttributeList window = {{"kernel_shape", Shape{2}}, {"pads", Shape{1, 1}}};
      AttributeList padded = window;
      padded.emplace_back("count_include_pad", int64_t{1});
      if (kind == "max") m.node("MaxPool", {"t"}, {"y"}, window);
      if (kind != "max") m.node("AveragePool", {"t"}, {"y"}, kind == "mean" ? window : padded);
    });
  }
}

TEST(varying_rows, means_and_maxima_of_what_there_is) {
  expect_same({2, 3}, [](TestModel& m) {
    m.node("Transpose", {"v"}, {"t"}, {{"perm", Shape{2, 1, 0}}});
    m.node("GlobalAveragePool", {"t"}, {"mean"}).node("GlobalMaxPool", {"t"}, {"most"});
    m.node("Add", {"mean", "most"}, {"y"});
  });
}

TEST(varying_rows, norms_resizes_and_rearrangements) {
  expect_same({4, 2, 2}, [](TestModel& m) {
    m.constant("one", numbers({4})).constant("scales", floats({4}, {1, 1, 2, 2}));
    m.node("InstanceNormalization", {"v", "one", "one"}, {"n"});
    m.node("Resize", {"n", "", "scales"}, {"r"}, {{"mode", std::string("linear")}});
    m.node("SpaceToDepth", {"r"}, {"s"}, {{"blocksize", int64_t{2}}});
    m.node("LRN", {"s"}, {"y"}, {{"size", int64_t{3}}});
  });
  expect_same({3, 4}, [](TestModel& m) {
    m.constant("g", numbers({4})).node("LayerNormalization", {"v", "g"}, {"n", "mean"});
    m.node("Add", {"n", "mean"}, {"y"});
  });
}

TEST(varying_rows, regions_of_pictures) {
  expect_same({4}, [](TestModel& m) {
    m.constant("picture", numbers({1, 2, 8, 8})).constant("zero", ints({0}));
    m.node("Shape", {"v"}, {"shape"}).node("Gather", {"shape", "zero"}, {"count"});
    m.node("ConstantOfShape", {"count"}, {"which"}, {{"value", ints({0})}});
    m.node("Abs", {"v"}, {"boxes"});
    m.node("RoiAlign", {"picture", "boxes", "which"}, {"y"},
           {{"output_height", int64_t{2}},
            {"output_width", int64_t{2}},
            {"sampling_ratio", int64_t{2}},
            {"spatial_scale", 4.0F}});
  });
}

TEST(varying_rows, products) {
  for (const int64_t transposed : {0, 1}) {
    static int64_t transpose;
    transpose = transposed;
    expect_same({3}, [](TestModel& m) {  // rows, or terms of the sum
      m.constant("w", transpose == 0 ? numbers({3, 2}) : numbers({2, 3}));
      m.constant("c", numbers({2}));
      m.node("Gemm", {"v", "w", "c"}, {"y"}, {{"alpha", 0.5F}, {"transB", transpose}});
    });
  }
  expect_same({3}, [](TestModel& m) {
    m.constant("one", numbers({1, 3}));
    m.node("Gemm", {"v", "v", "one"}, {"y"}, {{"transA", int64_t{1}}});
  });
  for (const char* equation : {"ij,ij->j", "ij,kj->ik", "ij,ik->jk", "ij,ij->ij"}) {
    static std::string text;
    text = equation;
    expect_same({3}, [](TestModel& m) {
      m.node("Einsum", {"v", "v"}, {"y"}, {{"equation", text}});
    });
  }
}

TEST(varying_rows, recurrent_nets_of_rows_and_along_them) {
  for (const char* type : {"LSTM", "GRU", "RNN"}) {
    for (const int64_t along : {0, 1}) {
      static std::string kind;
      static int64_t axis, gates;
      kind = type, axis = along;
      gates = kind == "LSTM" ? 4 : kind == "GRU" ? 3 : 1;
      expect_same({3}, [](TestModel& m) {
        m.constant("w", numbers({2, 2 * gates, 3})).constant("r", numbers({2, 2 * gates, 2}));
        m.constant("axis", ints({axis})).node("Unsqueeze", {"v", "axis"}, {"texts"});
        m.constant("all", ints({-1})).constant("four", ints({-1, 4}));
        m.node(kind, {"texts", "w", "r"}, {"steps", "last"},
               {{"hidden_size", int64_t{2}}, {"direction", std::string("bidirectional")}});
        m.node("Reshape", {"last", "four"}, {"states"})
            .node("Reshape", {"steps", "four"}, {"flat"});
        m.node("Concat", {"flat", "states"}, {"y"}, {{"axis", int64_t{0}}});
      });
    }
  }
}

TEST(varying_rows, tiles_pads_and_choices) {
  expect_same({2}, [](TestModel& m) {
    m.constant("repeats", ints({3, 2})).node("Tile", {"v", "repeats"}, {"y"});
  });
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    static std::string kind;
    kind = mode;
    expect_same({2}, [](TestModel& m) {
      m.constant("pads", ints({2, 1, 3, 0}));
      m.node("Pad", {"v", "pads"}, {"y"}, {{"mode", kind}});
    });
  }
  expect_same({2}, [](TestModel& m) {
    m.constant("pads", ints({0, 1, -1, 0})).constant("value", floats({}, {7}));
    m.node("Pad", {"v", "pads", "value"}, {"y"});
  });
  for (const int64_t wanted : {1, 2, 4, 6}) {
    static int64_t count;
    count = wanted;
    expect_same({3}, [](TestModel& m) {
      m.constant("shape", ints({count, 2})).node("CenterCropPad", {"v", "shape"}, {"y"});
    });
  }
  expect_same({4}, [](TestModel& m) {
    m.node("ArgMax", {"v"}, {"best"}, {{"axis", int64_t{1}}});
    m.node("GatherElements", {"v", "best"}, {"chosen"}, {{"axis", int64_t{1}}});
    m.constant("depth", ints({4})).constant("values", floats({2}, {-1, 2}));
    m.node("OneHot", {"best", "depth", "values"}, {"hot"});
    m.constant("axis", ints({1})).node("Squeeze", {"hot", "axis"}, {"flat"});
    m.node("ScatterElements", {"v", "best", "chosen"}, {"written"}, {{"axis", int64_t{1}}});
    m.node("Add", {"flat", "written"}, {"sum"}).node("Add", {"sum", "chosen"}, {"y"});
  });
}

TEST(varying_rows, updates_that_are_not_there_write_nothing) {
  TestModel m(18);
  m.input("mask", {3}, DType::kBool).input("x", {3}).input("data", {4});
  m.constant("places", ints({-1, 0, 2}));
  m.node("Compress", {"x", "mask"}, {"u"}, {{"axis", int64_t{0}}});
  m.node("Compress", {"places", "mask"}, {"p"}, {{"axis", int64_t{0}}});
  const Graph graph = m.node("ScatterElements", {"data", "p", "u"}, {"y"}).output("y").graph();
  const auto written = [&](const std::vector<float>& chosen) {
    Tensor mask(DType::kBool, {3});
    for (int64_t i = 0; i < 3; ++i) mask.set(i, chosen[static_cast<size_t>(i)]);
    return run_optimized(graph, {mask, floats({3}, {7, 8, 9}), floats({4}, {1, 2, 3, 4})})[0];
  };
  EXPECT_EQ(relative_error(written({1, 0, 1}), floats({4}, {1, 2, 9, 7})), 0);
  EXPECT_EQ(relative_error(written({0, 1, 0}), floats({4}, {8, 2, 3, 4})), 0);
  EXPECT_EQ(relative_error(written({0, 0, 0}), floats({4}, {1, 2, 3, 4})), 0);
}

TEST(varying_rows, rows_are_written_where_there_are_some) {
  expect_same({2}, [](TestModel& m) {
    m.constant("places", ints({-1, 0})).constant("axis", ints({1}));
    m.node("Unsqueeze", {"places", "axis"}, {"at"}).constant("updates", numbers({2, 2}));
    m.node("ScatterND", {"v", "at", "updates"}, {"y"}, {{"reduction", std::string("add")}});
  });
}

TEST(varying_rows, a_range_ends_where_a_run_does) {
  expect_same({2}, [](TestModel& m) {
    Tensor two(DType::kI64, {}), one(DType::kI64, {}), first(DType::kI64, {});
    two.set(0, 2), one.set(0, -1);
    m.constant("two", two).constant("start", one).constant("first", first);
    m.node("Shape", {"v"}, {"shape"}).node("Gather", {"shape", "first"}, {"count"});
    m.node("Range", {"start", "count", "two"}, {"list"});
    m.node("Cast", {"list"}, {"y"}, {{"to", int64_t{1}}});
  });
}

TEST(varying_rows, operands_of_different_numbers_of_rows_end_the_run) {
  TestModel m(18);
  m.input("first", {3}, DType::kBool).input("second", {3}, DType::kBool);
  m.input("x", {3, 2}).input("z", {3, 2});
  m.node("Compress", {"x", "first"}, {"a"}, {{"axis", int64_t{0}}});
  m.node("Compress", {"z", "second"}, {"b"}, {{"axis", int64_t{0}}});
  m.node("Einsum", {"a", "b"}, {"y"}, {{"equation", std::string("ij,ij->j")}});
  const Graph graph = m.output("y").graph();
  Tensor two(DType::kBool, {3}), one(DType::kBool, {3});
  two.set(0, 1), two.set(1, 1), one.set(2, 1);
  const Tensor x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(relative_error(run_optimized(graph, {two, two, x, x})[0], floats({2}, {10, 20})), 0);
  const auto found = run_reference(graph, {two, one, x, x});
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().message().find("different numbers of elements of a label"),
            std::string::npos)
      << found.status().message();
}

TEST(varying_rows, what_may_not_go_together_is_refused) {
  TestModel m(18);
  m.input("mask", {kRows}, DType::kBool).input("x", {kRows, 2}).constant("w", numbers({2, 3}));
  m.node("Compress", {"x", "mask"}, {"v"}, {{"axis", int64_t{0}}});
  m.constant("c", numbers({kRows, 3})).node("Gemm", {"v", "w", "c"}, {"y"}).output("y");
  const Result<Graph> graph = m.import();
  ASSERT_FALSE(graph.ok()) << "a run may have other rows than are added";
  EXPECT_NE(graph.status().message().find("operand 2 with 5 elements in dimension 0"),
            std::string::npos)
      << graph.status().message();
}

TEST(varying_rows, what_is_computed_for_one_shape_is_refused) {
  TestModel m(18);
  m.input("mask", {kRows}, DType::kBool).input("x", {kRows, 2});
  m.node("Compress", {"x", "mask"}, {"v"}, {{"axis", int64_t{0}}});
  m.node("Transpose", {"v"}, {"t"}).constant("axes", ints({0, 1}));
  m.node("Unsqueeze", {"t", "axes"}, {"picture"}).constant("scales", floats({4}, {1, 1, 2, 2}));
  const Result<Graph> graph =
      m.node("Resize", {"picture", "", "scales"}, {"y"}).output("y").import();
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find(
                "node 'node_y' (Resize): operand 0 whose dimension 3 depends on data"),
            std::string::npos)
      << graph.status().message();
}

TEST(varying_rows, operands_of_too_few_or_too_many_dimensions_are_errors) {
  Rng rng(1);
  TestModel model;
  model.input("all", {6, 4}).input("mask", {6}, DType::kBool).input("x", {1, 2, 8, 8});
  model.node("Compress", {"all", "mask"}, {"rows"}, {{"axis", int64_t{0}}});
  model.constant("of", Tensor(DType::kI64, {}));
  EXPECT_FALSE(model.node("RoiAlign", {"x", "rows", "of"}, {"y"}).output("y").import().ok());
  TestModel gemm;
  gemm.input("all", {6, 4}).input("mask", {6}, DType::kBool);
  gemm.node("Compress", {"all", "mask"}, {"rows"}, {{"axis", int64_t{0}}});
  gemm.constant("w", random_tensor({4, 3}, rng)).constant("c", random_tensor({2, 6, 3}, rng));
  EXPECT_FALSE(gemm.node("Gemm", {"rows", "w", "c"}, {"y"}).output("y").import().ok());
}

}  // namespace
}  // namespace hone::graph
