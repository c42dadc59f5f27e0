// Tests what pointwise operators easily get wrong: NaN, signs, ends of ranges, cancellation, 64
// bits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor tensor(DType dtype, const std::vector<double>& values) {
  Tensor t(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), values[i]);
  return t;
}

Tensor words(DType dtype, const std::vector<uint64_t>& values) {
  Tensor t(dtype, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.as<uint64_t>().begin());
  return t;
}

// The result of one node, run through all passes; and of the node folded, which must be the same.
Tensor result(const char* type, const std::vector<Tensor>& operands,
              const AttributeList& attributes = {}, int opset = 28) {
  TestModel running(opset), folded(opset);
  std::vector<std::string> names;
  for (size_t i = 0; i < operands.size(); ++i) {
    names.push_back(fmt::format("x{}", i));
    running.input(names[i], operands[i].shape(), operands[i].dtype());
    folded.constant(names[i], operands[i]);
  }
  running.node(type, names, {"y"}, attributes).output("y");
  folded.node(type, names, {"y"}, attributes).output("y");
  const Tensor found = run_optimized(running.graph(), operands)[0];
  const Tensor constant = run_optimized(folded.graph(), {})[0];
  EXPECT_EQ(found.shape(), constant.shape());
  for (int64_t i = 0; i < found.size() && found.shape() == constant.shape(); ++i) {
    const bool same =
        found.at(i) == constant.at(i) || (std::isnan(found.at(i)) && std::isnan(constant.at(i)));
    EXPECT_TRUE(same) << type << " folded: " << constant.at(i) << ", run: " << found.at(i);
  }
  return found;
}

void expect_values(const Tensor& found, const std::vector<double>& expected, double tolerance = 0) {
  ASSERT_EQ(found.size(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double x = found.at(static_cast<int64_t>(i));
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(x)) << "element " << i << " is " << x;
    } else if (std::isinf(expected[i]) || tolerance == 0) {
      EXPECT_EQ(x, expected[i]) << "element " << i;
    } else {
      EXPECT_NEAR(x, expected[i], tolerance * std::abs(expected[i])) << "element " << i;
    }
  }
}

TEST(pointwise, nan_passes_through_what_chooses) {
  const Tensor a = tensor(DType::kF32, {kNaN, 1, kNaN, -2});
  const Tensor b = tensor(DType::kF32, {1, kNaN, kNaN, 3});
  expect_values(result("Max", {a, b}), {kNaN, kNaN, kNaN, 3});
  expect_values(result("Min", {a, b}), {kNaN, kNaN, kNaN, -2});
  expect_values(result("Relu", {a}), {kNaN, 1, kNaN, 0});
  const Tensor low = tensor(DType::kF32, {0}).reshaped({});
  const Tensor high = tensor(DType::kF32, {2}).reshaped({});
  expect_values(result("Clip", {a, low, high}), {kNaN, 1, kNaN, 0});
  for (const char* type : {"HardSigmoid", "HardSwish", "Elu", "Celu", "Selu", "Softplus", "Mish",
                           "LeakyRelu", "Gelu", "Sign", "Asinh", "Sinh"}) {
    SCOPED_TRACE(type);
    EXPECT_TRUE(std::isnan(result(type, {a}).at(0)));
  }
  expect_values(result("IsNaN", {a}), {1, 0, 1, 0});
  // Bounds and operands that are one number for all elements, known and not.
  const Tensor none = tensor(DType::kF32, {kNaN}).reshaped({});
  const std::vector<double> all_nan(4, kNaN);
  expect_values(result("Max", {b, none}), all_nan);
  expect_values(result("Min", {none, b, high}), all_nan);
  expect_values(result("Clip", {b, none, high}), all_nan);
  expect_values(result("Clip", {b, low, none}), all_nan);
  for (const auto& [type, operands] :
       std::vector<std::pair<const char*, std::vector<std::string>>>{{"Max", {"x", "c"}},
                                                                     {"Min", {"c", "x"}},
                                                                     {"Clip", {"x", "c"}},
                                                                     {"Clip", {"x", "", "c"}}}) {
    TestModel model;
    model.input("x", {4}).constant("c", none).node(type, operands, {"y"}).output("y");
    expect_values(run_optimized(model.graph(), {b})[0], all_nan);
  }
}

TEST(pointwise, extremes_of_many_operands_are_no_larger_than_their_number) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI32}) {
    for (const char* type : {"Max", "Min"}) {
      std::vector<Tensor> operands;
      for (int i = 0; i < 200; ++i)
        operands.push_back(tensor(dtype, {i % 7 - 3.0, -(i % 5) + 1.0}));
      const bool largest = type[1] == 'a';
      expect_values(result(type, operands),
                    largest ? std::vector<double>{3, 1} : std::vector<double>{-3, -3});
      if (!is_float(dtype)) continue;
      for (const size_t place : {size_t{0}, size_t{1}, size_t{100}, size_t{199}}) {
        std::vector<Tensor> with_nan = operands;
        with_nan[place] = tensor(dtype, {kNaN, 0});
        EXPECT_TRUE(std::isnan(result(type, with_nan).at(0))) << type << place;
      }
    }
  }
}

TEST(pointwise, functions_are_right_where_others_are_not) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const Tensor half = tensor(dtype, {0.5}).reshaped({});
    for (const bool is_constant : {false, true}) {
      TestModel model;
      model.input("x", {5}, dtype);
      is_constant ? model.constant("c", half) : model.input("c", {}, dtype);
      model.node("Pow", {"x", "c"}, {"y"}).output("y");
      const Tensor x = tensor(dtype, {-0.0, -inf, 4, kNaN, -1});
      const Tensor y =
          run_optimized(model.graph(), is_constant ? std::vector{x} : std::vector{x, half})[0];
      expect_values(y, {0, inf, 2, kNaN, kNaN});
      EXPECT_FALSE(std::signbit(y.at(0)));
    }
    expect_values(result("Acosh", {tensor(dtype, {-1e4, -5e3, -2, 0.5, 1, kNaN})}),
                  {kNaN, kNaN, kNaN, kNaN, 0, kNaN});
    for (const char* type : {"Asinh", "Atanh", "Sinh"})
      EXPECT_TRUE(std::signbit(result(type, {tensor(dtype, {-0.0})}).at(0))) << type;
    EXPECT_FALSE(std::signbit(result("Sign", {tensor(dtype, {-0.0})}).at(0)));
  }
}

TEST(pointwise, remainders_have_the_sign_of_the_divisor_or_of_the_dividend) {
  const AttributeList like_c = {{"fmod", int64_t{1}}};
  for (const DType dtype : {DType::kI8, DType::kI32, DType::kI64, DType::kF32, DType::kF64}) {
    const Tensor a = tensor(dtype, {-7, 7, -7, 7, 6}), b = tensor(dtype, {3, -3, -3, 3, -3});
    expect_values(result("Mod", {a, b}), {2, -2, -1, 1, 0});
    expect_values(result("Mod", {a, b}, like_c), {-1, 1, -1, 1, 0});
  }
  // A quotient of more digits than a double has.
  const Tensor large = tensor(DType::kF64, {1e300});
  expect_values(result("Mod", {large, tensor(DType::kF64, {7})}, like_c), {std::fmod(1e300, 7)});
  // By zero: any value, but no trap.
  EXPECT_EQ(result("Mod", {tensor(DType::kI32, {5}), tensor(DType::kI32, {0})}).size(), 1);
  EXPECT_EQ(result("Div", {tensor(DType::kI32, {5}), tensor(DType::kI32, {0})}).size(), 1);
}

TEST(pointwise, integers_without_sign_reach_their_end) {
  const uint64_t top = ~uint64_t{0};
  const Tensor a = words(DType::kU64, {top, 1, top - 1}), b = words(DType::kU64, {1, top, top});
  expect_values(result("Less", {a, b}), {0, 1, 1});
  expect_values(result("GreaterOrEqual", {a, b}), {1, 0, 0});
  EXPECT_EQ(result("Max", {a, b}).as<uint64_t>()[0], top);
  EXPECT_EQ(result("Min", {a, b}).as<uint64_t>()[2], top - 1);
  EXPECT_EQ(result("Div", {a, words(DType::kU64, {10, 10, 10})}).as<uint64_t>()[0], top / 10);
  EXPECT_EQ(result("Mod", {a, words(DType::kU64, {10, 10, 10})}).as<uint64_t>()[0], 5U);
  EXPECT_EQ(result("Add", {a, b}).as<uint64_t>()[0], 0U);
  expect_values(result("Cast", {a}, {{"to", int64_t{11}}}), {0x1p64, 1, 0x1p64});
  expect_values(result("Sub", {tensor(DType::kU8, {3}), tensor(DType::kU8, {5})}), {254});
}

TEST(pointwise, comparisons_of_64_bits_are_exact) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  const int64_t most = std::numeric_limits<int64_t>::max();
  const Tensor a = ints({least, most, most - 1}), b = ints({most, least, most});
  expect_values(result("Less", {a, b}), {1, 0, 1});
  expect_values(result("Equal", {a, b}), {0, 0, 0});
  // A constant of one element is part of the code.
  TestModel model;
  model.input("x", {3}, DType::kI64).constant("c", ints({most - 1}));
  model.node("Equal", {"x", "c"}, {"y"}).output("y");
  expect_values(run_optimized(model.graph(), {a})[0], {0, 0, 1});
}

TEST(pointwise, casts_wrap_integers_and_truncate_floats) {
  const auto cast = [](const Tensor& x, DType to) {
    return result("Cast", {x}, {{"to", static_cast<int64_t>(to)}});
  };
  expect_values(cast(tensor(DType::kI16, {200, -1, 300}), DType::kI8), {-56, -1, 44});
  expect_values(cast(tensor(DType::kF32, {-1.9, 1.9, 0.5}), DType::kI32), {-1, 1, 0});
  expect_values(cast(tensor(DType::kF32, {0, 0.25, -0.0, kNaN}), DType::kBool), {0, 1, 0, 1});
  expect_values(cast(tensor(DType::kBool, {0, 1}), DType::kF16), {0, 1});
  // In two steps, by float32, the first would be a tie.
  expect_values(cast(tensor(DType::kF64, {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11}), DType::kF16),
                {1 + 0x1p-10, 1});
  expect_values(cast(tensor(DType::kF32, {65520, 65519}), DType::kF16), {kInfinity, 65504});
  expect_values(cast(tensor(DType::kF32, {257, 259}), DType::kBF16), {256, 260});
}

TEST(pointwise, bits_are_read_as_another_type) {
  const auto as = [](const Tensor& x, DType to) {
    return result("BitCast", {x}, {{"to", static_cast<int64_t>(to)}});
  };
  expect_values(as(tensor(DType::kF32, {1, -2}), DType::kU32), {0x3F800000, 0xC0000000});
  expect_values(as(tensor(DType::kF16, {1, -2}), DType::kI16), {0x3C00, -0x4000});
  expect_values(as(tensor(DType::kU16, {0x3F80, 0xC000}), DType::kBF16), {1, -2});
  TestModel narrow(28);
  narrow.input("x", {1}).node("BitCast", {"x"}, {"y"}, {{"to", int64_t{7}}}).output("y");
  EXPECT_EQ(narrow.import().status().code(), Code::kInvalid);
}

TEST(pointwise, powers_take_operands_of_two_types) {
  expect_values(result("Pow", {tensor(DType::kI32, {2, -3, 5}), tensor(DType::kF32, {10, 3, 0})}),
                {1024, -27, 1});
  expect_values(result("Pow", {tensor(DType::kF32, {2, 0.5}), tensor(DType::kI64, {-2, 3})}),
                {0.25, 0.125}, 1e-6);
  expect_values(result("Pow", {tensor(DType::kI64, {3037000499}), tensor(DType::kI64, {2})}),
                {9223372030926249001.0});
}

TEST(pointwise, nothing_cancels_near_zero_or_overflows_early) {
  struct Function {
    const char* type;
    double (*exact)(double);
    std::vector<double> at;
  };
  const Function functions[] = {
      {"Sinh", [](double x) { return std::sinh(x); }, {1e-8, -1e-3, 0.7, 1.5, 89, -89}},
      {"Cosh", [](double x) { return std::cosh(x); }, {1e-8, 0.7, 89, -89}},
      {"Asinh", [](double x) { return std::asinh(x); }, {1e-8, -1e-3, 0.1, 3, -1e15, 1e30}},
      {"Acosh", [](double x) { return std::acosh(x); }, {1, 1.0009765625, 2, 1e15, 1e30}},
      {"Atanh", [](double x) { return std::atanh(x); }, {1e-8, -1e-3, 0.1, 0.9375, 1}},
      {"Asin", [](double x) { return std::asin(x); }, {1e-8, -1e-3, 0.9375, 1, -1}},
      {"Acos", [](double x) { return std::acos(x); }, {-1, 0, 0.9375, 1}},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }, {-40, -1, 0, 1, 80}},
      {"Mish",
       [](double x) { return x * std::tanh(std::log1p(std::exp(x))); },
       {-40, -1, 0, 1e-8, 30, 80}},
      {"Tan", [](double x) { return std::tan(x); }, {1e-8, 0.5, 1.5, -3}},
      {"Elu", [](double x) { return x > 0 ? x : std::expm1(x); }, {-1e-30, -1e-8, -1e-3, -1, -90}},
      {"Celu", [](double x) { return x > 0 ? x : std::expm1(x); }, {-1e-30, -1e-3, -1, -90, 2}},
      {"Selu",
       [](double x) {
         const double gamma = 1.05070102214813232421875, alpha = 1.67326319217681884765625;
         return gamma * (x > 0 ? x : alpha * std::expm1(x));
       },
       {-1e-30, -1e-3, -1, -90, 2}},
  };
  for (const Function& f : functions) {
    SCOPED_TRACE(f.type);
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      const Tensor x = tensor(dtype, f.at);
      std::vector<double> expected;
      for (int64_t i = 0; i < x.size(); ++i) expected.push_back(f.exact(x.at(i)));
      expect_values(result(f.type, {x}), expected, dtype == DType::kF32 ? 1e-6 : 1e-13);
    }
  }
}

TEST(pointwise, operands_of_a_wrong_type_are_refused) {
  const std::pair<const char*, DType> cases[] = {
      {"Add", DType::kBool},       {"Mean", DType::kI32}, {"Mod", DType::kBool},
      {"Clip", DType::kBool},      {"Sum", DType::kBool}, {"BitwiseOr", DType::kF32},
      {"Max", DType::kBool},       {"And", DType::kI32},  {"SwiGLU", DType::kI64},
      {"BitwiseAnd", DType::kBool}};
  for (const auto& [type, dtype] : cases) {
    TestModel model(28);
    model.input("a", {2}, dtype).input("b", {2}, dtype).node(type, {"a", "b"}, {"y"}).output("y");
    EXPECT_EQ(model.import().status().code(), Code::kInvalid) << type;
  }
}

}  // namespace
}  // namespace hone::graph
