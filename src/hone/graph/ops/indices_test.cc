#include <gtest/gtest.h>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

Tensor run_one(const TestModel& model, const std::vector<Tensor>& inputs) {
  return run_optimized(model.graph(), inputs)[0];
}

TEST(indices, scatter_applies_repeated_and_negative_indices_in_order) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor at(DType::kI64, {1, 3});
  for (int64_t i = 0; i < 3; ++i) at.set(i, i == 1 ? -3 : 0);  // all mean column 0
  const auto model = [&](const char* reduction) {
    TestModel m(18);
    m.input("x", {2, 3})
        .input("i", {1, 3}, DType::kI64)
        .input("u", {1, 3})
        .node("ScatterElements", {"x", "i", "u"}, {"y"},
              {{"axis", int64_t{1}}, {"reduction", std::string(reduction)}})
        .output("y");
    return m;
  };
  const std::vector<Tensor> inputs = {x, at, floats({1, 3}, {10, 20, 30})};
  const auto expect = [&](const char* reduction, float first) {
    EXPECT_EQ(
        relative_error(run_one(model(reduction), inputs), floats({2, 3}, {first, 2, 3, 4, 5, 6})),
        0)
        << reduction;
  };
  expect("none", 30);
  expect("add", 61);
  expect("mul", 6000);
  expect("max", 30);
  expect("min", 1);
}

// Few updates of many rows, and many updates of few: both ways in which the work is divided.
TEST(indices, scatter_nd_in_both_divisions) {
  for (const int64_t updates : {1, 7}) {
    TestModel m(18);
    m.input("x", {4, 1})
        .input("i", {updates, 1}, DType::kI64)
        .input("u", {updates, 1})
        .node("ScatterND", {"x", "i", "u"}, {"y"}, {{"reduction", std::string("add")}})
        .output("y");
    Tensor at(DType::kI64, {updates, 1}), by(DType::kF32, {updates, 1});
    Tensor expected = floats({4, 1}, {1, 2, 3, 4});
    const Tensor x = expected.clone();
    for (int64_t k = 0; k < updates; ++k) {
      at.set(k, k % 2 == 0 ? 3 : -3);
      by.set(k, static_cast<double>(k + 1));
      const int64_t row = k % 2 == 0 ? 3 : 1;
      expected.set(row, expected.at(row) + static_cast<double>(k + 1));
    }
    EXPECT_EQ(relative_error(run_one(m, {x, at, by}), expected), 0) << updates;
  }
}

TEST(indices, one_outside_reads_the_nearest_element) {
  TestModel m(17);
  m.input("x", {3}).input("i", {4}, DType::kI64).node("Gather", {"x", "i"}, {"y"}).output("y");
  EXPECT_EQ(relative_error(run_one(m, {floats({3}, {1, 2, 3}), ints({-1, -9, 9, 1})}),
                           floats({4}, {3, 1, 3, 2})),
            0);
}

// Positions that a table does not have, also where the table is too large to be read in advance.
TEST(indices, known_ones_have_to_be_in_a_table) {
  Tensor positions(DType::kI64, {513, 1}), same(DType::kI64, {513, 256});
  for (int64_t i = 0; i < same.size(); ++i) same.set(i, static_cast<double>(i / 256));
  for (int64_t i = 0; i < positions.size(); ++i) positions.set(i, static_cast<double>(i));
  for (const std::string type : {"Gather", "GatherND", "GatherElements"}) {
    for (const int64_t rows : {512, 513}) {
      SCOPED_TRACE(fmt::format("{} of {}", type, rows));
      TestModel m(17);
      m.input("x", {513, 256})
          .constant("table", Tensor(DType::kF32, {rows, 256}))
          .constant("i", type == "GatherElements" ? same : positions)
          .node(type, {"table", "i"}, {"rows"})
          .node("ReduceSum", {"rows"}, {"sum"})
          .node("Add", {"x", "sum"}, {"y"})
          .output("y");
      const auto graph = m.import();
      EXPECT_EQ(graph.ok(), rows == 513) << graph.status().message();
      if (rows == 513) continue;
      const std::string message = graph.status().message();
      EXPECT_NE(message.find("(" + type + "): index 512 into 512 elements"), std::string::npos)
          << message;
    }
  }
}

TEST(indices, without_updates_or_operands_the_data_stays) {
  TestModel m(18);
  m.input("x", {2, 2})
      .constant("i", Tensor(DType::kI64, {0, 1}))
      .constant("u", Tensor(DType::kF32, {0, 2}))
      .node("ScatterND", {"x", "i", "u"}, {"s"})
      .node("Concat", {"u", "s", "u"}, {"y"}, {{"axis", int64_t{0}}})
      .output("y");
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(relative_error(run_one(m, {x}), x), 0);
}

// Reflection goes back and forth where the padding is longer than the data.
TEST(indices, pad_reflects_again_and_again) {
  TestModel m(18);
  m.input("x", {3})
      .constant("p", ints({5, 6}))
      .node("Pad", {"x", "p"}, {"y"}, {{"mode", std::string("reflect")}})
      .output("y");
  EXPECT_EQ(relative_error(run_one(m, {floats({3}, {1, 2, 3})}),
                           floats({14}, {2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2, 1})),
            0);
}

// Elements that are cut off at one end are not repeated at the other one.
TEST(indices, pad_repeats_what_negative_pads_leave) {
  const auto padded = [](const char* mode, const std::vector<int64_t>& pads) {
    TestModel m(19);
    m.input("x", {4}).constant("p", ints(pads));
    m.node("Pad", {"x", "p"}, {"y"}, {{"mode", std::string(mode)}}).output("y");
    return run_one(m, {floats({4}, {1, 2, 3, 4})});
  };
  EXPECT_EQ(relative_error(padded("wrap", {-1, 2}), floats({5}, {2, 3, 4, 2, 3})), 0);
  EXPECT_EQ(relative_error(padded("wrap", {3, -2}), floats({5}, {2, 1, 2, 1, 2})), 0);
  EXPECT_EQ(relative_error(padded("reflect", {-2, 2}), floats({4}, {3, 4, 3, 4})), 0);
  EXPECT_EQ(relative_error(padded("edge", {-1, 2}), floats({5}, {2, 3, 4, 4, 4})), 0);
}

}  // namespace
}  // namespace hone::graph
