#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

struct Unary {
  const char* type;
  AttributeList attributes;
  std::function<double(double)> formula;
};

TEST(elementwise, unary_functions_equal_their_formulas) {
  const std::vector<Unary> cases = {
      {"Relu", {}, [](double x) { return x > 0 ? x : 0; }},
      {"LeakyRelu", {{"alpha", 0.25f}}, [](double x) { return x > 0 ? x : 0.25 * x; }},
      {"Sigmoid", {}, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Tanh", {}, [](double x) { return std::tanh(x); }},
      {"HardSigmoid",
       {{"alpha", 0.5f}},
       [](double x) { return std::clamp(0.5 * x + 0.5, 0.0, 1.0); }},
      {"HardSwish", {}, [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"Exp", {}, [](double x) { return std::exp(x); }},
      {"Erf", {}, [](double x) { return std::erf(x); }},
      {"Abs", {}, [](double x) { return std::abs(x); }},
      {"Neg", {}, [](double x) { return -x; }},
      {"Floor", {}, [](double x) { return std::floor(x); }},
      {"Ceil", {}, [](double x) { return std::ceil(x); }},
  };
  Rng rng(31);
  const Tensor x = random_tensor({2, 3, 4}, rng, -5, 5);
  for (const Unary& c : cases) {
    SCOPED_TRACE(c.type);
    TestModel model;
    model.input("x", x.shape()).node(c.type, {"x"}, {"y"}, c.attributes).output("y");
    Tensor expected(DType::kF32, x.shape());
    for (int64_t i = 0; i < x.size(); ++i) expected.set(i, c.formula(x.at(i)));
    EXPECT_LT(relative_error(run_optimized(model.graph(), {x})[0], expected), 1e-6);
  }
}

TEST(elementwise, clip_takes_bounds_as_attributes_or_operands) {
  const Tensor x = floats({5}, {-3, -1, 0.5f, 6, 9});
  const Tensor both = floats({5}, {-1, -1, 0.5f, 6, 6});
  TestModel old(9);
  old.input("x", {5}).node("Clip", {"x"}, {"y"}, {{"min", -1.0f}, {"max", 6.0f}}).output("y");
  EXPECT_EQ(relative_error(run_optimized(old.graph(), {x})[0], both), 0);
  TestModel now(13);
  now.input("x", {5}).constant("lo", floats({}, {-1})).constant("hi", floats({}, {6}));
  now.node("Clip", {"x", "lo", "hi"}, {"y"}).output("y");
  EXPECT_EQ(relative_error(run_optimized(now.graph(), {x})[0], both), 0);
  TestModel above(13);
  above.input("x", {5})
      .constant("hi", floats({}, {6}))
      .node("Clip", {"x", "", "hi"}, {"y"})
      .output("y");
  EXPECT_EQ(relative_error(run_optimized(above.graph(), {x})[0], floats({5}, {-3, -1, 0.5f, 6, 6})),
            0);
  TestModel dynamic(13);
  dynamic.input("x", {5}).input("lo", {}).node("Clip", {"x", "lo"}, {"y"}).output("y");
  EXPECT_EQ(relative_error(run_optimized(dynamic.graph(), {x, floats({}, {0})})[0],
                           floats({5}, {0, 0, 0.5f, 6, 9})),
            0);
  EXPECT_EQ(TestModel(10)
                .input("x", {5})
                .input("lo", {})
                .node("Clip", {"x", "lo"}, {"y"})
                .output("y")
                .import()
                .status()
                .code(),
            Code::kInvalid);
}

TEST(elementwise, operands_are_broadcast_as_in_numpy) {
  const Tensor a = floats({2, 1, 2}, {1, 2, 3, 4});
  const Tensor b = floats({3, 1}, {10, 20, 30});
  const std::vector<std::pair<const char*, std::function<double(double, double)>>> cases = {
      {"Add", [](double x, double y) { return x + y; }},
      {"Sub", [](double x, double y) { return x - y; }},
      {"Mul", [](double x, double y) { return x * y; }},
      {"Div", [](double x, double y) { return x / y; }},
      {"Min", [](double x, double y) { return std::min(x, y); }},
      {"Max", [](double x, double y) { return std::max(x, y); }},
      {"Pow", [](double x, double y) { return std::pow(x, y); }}};
  for (const auto& [type, formula] : cases) {
    SCOPED_TRACE(type);
    Tensor expected(DType::kF32, {2, 3, 2});
    for (int64_t i = 0; i < 12; ++i)
      expected.set(i, formula(a.at(i / 6 * 2 + i % 2), b.at(i / 2 % 3)));
    TestModel model;
    model.input("a", a.shape()).input("b", b.shape()).node(type, {"a", "b"}, {"y"}).output("y");
    EXPECT_LT(relative_error(run_optimized(model.graph(), {a, b})[0], expected), 1e-6);
    TestModel folded;
    folded.input("a", a.shape()).constant("b", b).node(type, {"a", "b"}, {"y"}).output("y");
    EXPECT_LT(relative_error(run_optimized(folded.graph(), {a})[0], expected), 1e-6);
  }
  EXPECT_EQ(TestModel()
                .input("a", {2})
                .input("b", {3})
                .node("Add", {"a", "b"}, {"y"})
                .output("y")
                .import()
                .status()
                .code(),
            Code::kInvalid);
}

TEST(elementwise, integers_and_casts_keep_their_type) {
  TestModel model;
  model.input("x", {3}, DType::kI64).constant("c", ints({1, 2, 3})).node("Mul", {"x", "c"}, {"m"});
  model.node("Cast", {"m"}, {"y"}, {{"to", int64_t{1}}}).output("y").output("m");
  const auto outputs = run_optimized(model.graph(), {ints({5, 6, 7})});
  EXPECT_EQ(relative_error(outputs[0], floats({3}, {5, 12, 21})), 0);
  EXPECT_EQ(relative_error(outputs[1], ints({5, 12, 21})), 0);
}

TEST(elementwise, one_value_may_be_both_operands) {
  TestModel model;
  model.input("x", {3}).node("Mul", {"x", "x"}, {"y"}).output("y");
  EXPECT_EQ(relative_error(run_optimized(model.graph(), {floats({3}, {1, 2, 3})})[0],
                           floats({3}, {1, 4, 9})),
            0);
}

}  // namespace
}  // namespace hone::graph
