#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

AttributeList topk_attributes(bool largest) {
  return {{"axis", int64_t{1}}, {"largest", int64_t{largest}}};
}

TEST(top_k, gives_equal_values_in_their_order) {
  const Tensor x = floats({2, 4}, {1, 3, 3, 2, 5, 5, 5, 4});
  for (const bool largest : {true, false}) {
    TestModel model;
    model.input("x", {2, 4}).constant("k", ints({3}));
    model.node("TopK", {"x", "k"}, {"v", "i"}, topk_attributes(largest)).output("v").output("i");
    const std::vector<Tensor> found = run_optimized(model.graph(), {x});
    const Tensor values =
        largest ? floats({2, 3}, {3, 3, 2, 5, 5, 5}) : floats({2, 3}, {1, 2, 3, 4, 5, 5});
    const Tensor places = largest ? ints({1, 2, 3, 0, 1, 2}) : ints({0, 3, 1, 3, 0, 1});
    EXPECT_EQ(relative_error(found[0], values), 0);
    EXPECT_EQ(relative_error(found[1], places.reshaped({2, 3})), 0);
  }
}

TEST(top_k, computes_one_result_without_the_other) {
  const Tensor x = floats({1, 4}, {1, 3, 4, 2});
  for (const char* values : {"", "v"}) {
    TestModel places;
    places.input("x", {1, 4}).constant("k", ints({2}));
    places.node("TopK", {"x", "k"}, {values, "i"}).output("i");
    EXPECT_EQ(relative_error(run_optimized(places.graph(), {x})[0], ints({2, 1}).reshaped({1, 2})),
              0);
  }
  TestModel values;
  values.input("x", {1, 4}).constant("k", ints({2}));
  values.node("TopK", {"x", "k"}, {"v"}).output("v");
  EXPECT_EQ(relative_error(run_optimized(values.graph(), {x})[0], floats({1, 2}, {4, 3})), 0);
}

template <typename T>
void expect_top_as_sorted(DType dtype, const std::vector<T>& values, int64_t rows, int64_t k,
                          bool largest) {
  const auto extent = static_cast<int64_t>(values.size()) / rows;
  Tensor x(dtype, {rows, extent});
  std::copy(values.begin(), values.end(), x.as<T>().begin());
  TestModel model;
  model.input("x", {rows, extent}, dtype).constant("k", ints({k}));
  model.node("TopK", {"x", "k"}, {"v", "i"}, topk_attributes(largest)).output("v").output("i");
  const std::vector<Tensor> found = run_optimized(model.graph(), {x});
  for (int64_t row = 0; row < rows; ++row) {
    const T* of = values.data() + row * extent;
    std::vector<int64_t> order(static_cast<size_t>(extent));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      const bool i_is_none = of[i] != of[i], j_is_none = of[j] != of[j];  // greater than numbers
      if (i_is_none != j_is_none) return largest ? i_is_none : j_is_none;
      return largest ? of[i] > of[j] : of[i] < of[j];
    });
    for (int64_t i = 0; i < k; ++i) {
      const int64_t place = order[static_cast<size_t>(i)];
      ASSERT_EQ(found[1].as<int64_t>()[static_cast<size_t>(row * k + i)], place)
          << "row " << row << ", place " << i << " of " << k;
      const T value = found[0].as<T>()[static_cast<size_t>(row * k + i)];
      EXPECT_TRUE(value == of[place] || value != value);
    }
  }
}

template <typename T>
std::vector<T> random_values(Rng& rng, int64_t count) {
  std::vector<T> values;
  const double scale = std::pow(10, rng.between(0, 3));
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(scale * rng.normal()));
  return values;
}

TEST(top_k, is_a_sorted_row_s_begin) {
  Rng rng(0);
  for (const int64_t k : {1, 5, 16, 17, 47, 64, 65, 200}) {
    for (const bool largest : {true, false}) {
      for (const int64_t extent : {k, 4 * k, int64_t{3000}}) {
        std::vector<float> x = random_values<float>(rng, 2 * extent);
        for (const float odd : {HUGE_VALF, -HUGE_VALF, NAN, -0.F, 0.F, -NAN})
          x[static_cast<size_t>(rng.below(2 * extent))] = odd;
        expect_top_as_sorted(DType::kF32, x, 2, k, largest);
      }
      expect_top_as_sorted(DType::kF64, random_values<double>(rng, 500), 1, k, largest);
      expect_top_as_sorted(DType::kI64, random_values<int64_t>(rng, 500), 1, k, largest);
      expect_top_as_sorted(DType::kI32, random_values<int32_t>(rng, 500), 1, k, largest);
      std::vector<uint8_t> bytes;
      for (int i = 0; i < 500; ++i) bytes.push_back(static_cast<uint8_t>(rng.below(256)));
      expect_top_as_sorted(DType::kU8, bytes, 1, k, largest);
      std::vector<uint64_t> words;
      for (int i = 0; i < 500; ++i) words.push_back(rng.next());
      expect_top_as_sorted(DType::kU64, words, 1, k, largest);
    }
  }
}

TEST(top_k, has_elements_also_where_none_is_a_number) {
  for (const bool largest : {true, false}) {
    expect_top_as_sorted<float>(DType::kF32, {NAN, NAN, -HUGE_VALF, HUGE_VALF}, 1, 4, largest);
    expect_top_as_sorted<float>(DType::kF32, {NAN, NAN, NAN, NAN, NAN, 1}, 2, 2, largest);
    expect_top_as_sorted<int64_t>(DType::kI64, {INT64_MAX, INT64_MIN, INT64_MAX}, 1, 3, largest);
  }
}

// Rows whose first elements are decided by their places.
TEST(top_k, of_many_equals_takes_the_first) {
  Rng rng(3);
  for (const int64_t distinct : {1, 2, 5, 40}) {
    for (const int64_t extent : {20, 63, 64, 65, 130, 1000}) {
      for (const int64_t k : {1, 3, 16, 60, 64, 100, 700}) {
        if (k > extent) continue;
        std::vector<float> x;
        std::vector<int64_t> whole;
        for (int64_t i = 0; i < 2 * extent; ++i) {
          const int64_t value = rng.below(distinct);
          whole.push_back(value == 0 ? INT64_MIN : value == 1 ? INT64_MAX : value);
          x.push_back(value == 0 ? -HUGE_VALF : value == 1 ? NAN : static_cast<float>(value));
        }
        expect_top_as_sorted(DType::kF32, x, 2, k, true);
        expect_top_as_sorted(DType::kF32, x, 2, k, false);
        expect_top_as_sorted(DType::kI64, whole, 2, k, true);
      }
    }
  }
}

// Elements that are the least of their group all stand in a few groups.
TEST(top_k, of_what_repeats_like_the_groups) {
  for (const int64_t period : {16, 32, 48, 64, 128}) {
    std::vector<float> x;
    for (int64_t i = 0; i < 2048; ++i)
      x.push_back(static_cast<float>(i % period == 3 ? 5000 - i : i % 7));
    for (const int64_t k : {5, 16, 40, 100}) expect_top_as_sorted(DType::kF32, x, 1, k, true);
  }
}

TEST(top_k, along_the_first_axis) {
  Rng rng(4);
  const Tensor x = random_tensor({300, 3, 5}, rng);
  for (const int64_t k : {4, 90}) {
    TestModel model;
    model.input("x", {300, 3, 5}).constant("k", ints({k}));
    model.node("TopK", {"x", "k"}, {"v", "i"}, {{"axis", int64_t{0}}}).output("v").output("i");
    const std::vector<Tensor> found = run_optimized(model.graph(), {x});
    for (int64_t column = 0; column < 15; ++column) {
      std::vector<int64_t> order(300);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        return x.at(i * 15 + column) > x.at(j * 15 + column);
      });
      for (int64_t i = 0; i < k; ++i) {
        const int64_t place = order[static_cast<size_t>(i)];
        ASSERT_EQ(found[1].at(i * 15 + column), static_cast<double>(place));
        EXPECT_EQ(found[0].at(i * 15 + column), x.at(place * 15 + column));
      }
    }
  }
}

// Each element is better than all before it.
TEST(top_k, of_many_in_rising_order) {
  std::vector<float> rising;
  for (int i = 0; i < 4000; ++i) rising.push_back(static_cast<float>(i));
  expect_top_as_sorted(DType::kF32, rising, 1, 100, true);
  expect_top_as_sorted(DType::kF32, rising, 1, 100, false);
}

// Few long rows, cut into parts: two sorts, and places that are those in the row.
TEST(top_k, of_long_rows_in_parts) {
  const auto sorts = [](const Shape& shape, int64_t k) {
    TestModel model;
    model.input("x", shape).constant("k", ints({k}));
    const Graph graph = model.node("TopK", {"x", "k"}, {"v", "i"}).output("v").graph();
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [](const Node& node) { return node.type == "TopK"; });
  };
  EXPECT_EQ(sorts({1, 1 << 17}, 16), 2);
  EXPECT_EQ(sorts({2, 128256}, 50), 2);
  EXPECT_EQ(sorts({1, 65537}, 16), 1) << "a prime";
  EXPECT_EQ(sorts({1, 4096}, 16), 1) << "too short";
  EXPECT_EQ(sorts({64, 1 << 17}, 16), 1) << "work for all without";
  EXPECT_EQ(sorts({1, 1 << 17}, 40000), 1) << "too many of it";
  Rng rng(6);
  for (const auto& [rows, extent] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 65536}, {3, 68068}, {1, 128256}}) {
    std::vector<float> x;
    for (int64_t i = 0; i < rows * extent; ++i) x.push_back(static_cast<float>(rng.below(3000)));
    for (int i = 0; i < 9; ++i) x[static_cast<size_t>(rng.below(extent))] = NAN;
    for (const int64_t k : {1, 16, 300}) {
      expect_top_as_sorted(DType::kF32, x, rows, k, true);
      expect_top_as_sorted(DType::kF32, x, rows, k, false);
    }
  }
}

TEST(top_k, of_more_than_there_is_fails) {
  TestModel model;
  model.input("x", {1, 4}).constant("k", ints({5}));
  model.node("TopK", {"x", "k"}, {"v", "i"}).output("v");
  const auto graph = model.import();
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("k is 5 of 4 elements"), std::string::npos)
      << graph.status().message();
}

TEST(arg_max, chooses_the_first_or_the_last_of_equals) {
  const Tensor x = floats({2, 3}, {2, 7, 7, 1, 1, 0});
  for (const bool last : {false, true}) {
    TestModel model;
    model.input("x", {2, 3});
    model.node(
        "ArgMax", {"x"}, {"y"},
        {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}, {"select_last_index", int64_t{last}}});
    model.output("y");
    EXPECT_EQ(
        relative_error(run_optimized(model.graph(), {x})[0], last ? ints({2, 1}) : ints({1, 0})),
        0);
  }
}

// Finds NaN first, as numpy does.
template <typename T>
std::vector<double> arg_of(const std::vector<T>& x, int64_t outer, int64_t extent, int64_t inner,
                           bool largest, bool last) {
  std::vector<double> places;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      int64_t best = 0;
      const auto at = [&](int64_t r) {
        return x[static_cast<size_t>((o * extent + r) * inner + i)];
      };
      for (int64_t r = 1; r < extent; ++r) {
        const T a = at(r), b = at(best);
        const bool equal = a == b || (a != a && b != b);
        const bool better = b == b && (a != a || (largest ? a > b : a < b));
        if (better || (last && equal)) best = r;
      }
      places.push_back(static_cast<double>(best));
    }
  }
  return places;
}

template <typename T>
void expect_arg(DType dtype, const Shape& shape, size_t axis, const std::vector<T>& values) {
  Tensor x(dtype, shape);
  std::copy(values.begin(), values.end(), x.as<T>().begin());
  const auto product = [&](size_t from, size_t to) {
    return num_elements(
        Shape(shape.begin() + static_cast<long>(from), shape.begin() + static_cast<long>(to)));
  };
  for (const bool largest : {true, false}) {
    for (const bool last : {false, true}) {
      TestModel model;
      model.input("x", shape, dtype);
      model.node(largest ? "ArgMax" : "ArgMin", {"x"}, {"y"},
                 {{"axis", static_cast<int64_t>(axis)}, {"select_last_index", int64_t{last}}});
      model.output("y");
      const std::vector<double> expected = arg_of(values, product(0, axis), shape[axis],
                                                  product(axis + 1, shape.size()), largest, last);
      const Tensor found = run_optimized(model.graph(), {x})[0];
      ASSERT_EQ(found.size(), static_cast<int64_t>(expected.size()));
      for (int64_t i = 0; i < found.size(); ++i)
        ASSERT_EQ(found.at(i), expected[static_cast<size_t>(i)])
            << i << (largest ? " largest" : " least") << (last ? " last" : " first");
    }
  }
}

TEST(arg_max, along_any_axis_finds_what_is_not_a_number_first) {
  Rng rng(2);
  const Shape shape = {3, 5, 7};
  for (size_t axis = 0; axis < 3; ++axis) {
    std::vector<float> x;
    for (int i = 0; i < 105; ++i) {
      const float values[] = {0, -0.F, 1, 2, 2, -1, HUGE_VALF, -HUGE_VALF};
      x.push_back(rng.chance(0.1) ? NAN : values[rng.below(8)]);
    }
    expect_arg(DType::kF32, shape, axis, x);
    expect_arg(DType::kF32, shape, axis, std::vector<float>(105, -HUGE_VALF));
    expect_arg(DType::kF32, shape, axis, std::vector<float>(105, HUGE_VALF));
    expect_arg(DType::kF32, shape, axis, std::vector<float>(105, NAN));
    std::vector<int8_t> bytes;
    std::vector<uint64_t> words;
    for (int i = 0; i < 105; ++i) {
      bytes.push_back(static_cast<int8_t>(rng.between(-128, -125)));
      words.push_back(rng.chance(0.5) ? UINT64_MAX - static_cast<uint64_t>(rng.below(3)) : 0);
    }
    expect_arg(DType::kI8, shape, axis, bytes);
    expect_arg(DType::kU64, shape, axis, words);
  }
}

TEST(hardmax, before_opset_13_takes_all_dimensions_from_the_axis_on) {
  const Tensor x = floats({2, 2, 2}, {1, 2, 4, 3, 0, 9, 9, 1});
  const std::vector<std::vector<float>> expected = {{0, 0, 1, 0, 0, 1, 0, 0},
                                                    {0, 0, 1, 1, 0, 1, 1, 0}};
  for (const int opset : {11, 13}) {
    TestModel model(opset);
    model.input("x", x.shape()).node("Hardmax", {"x"}, {"y"}, {{"axis", int64_t{1}}}).output("y");
    EXPECT_EQ(relative_error(run_optimized(model.graph(), {x})[0],
                             floats({2, 2, 2}, expected[opset < 13 ? 0 : 1])),
              0);
  }
}

}  // namespace
}  // namespace hone::graph
