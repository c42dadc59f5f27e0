#include <gtest/gtest.h>

#include <cmath>

#include "hone/graph/passes/pass_testing.h"

namespace hone::graph {
namespace {

using Types = std::vector<std::string>;

// A model of x with constants of any shape by name: "c:0.5" is written as such.
class Recognizes {
 public:
  explicit Recognizes(Shape shape = {2, 3, 8}, int opset = 18)
      : shape_(std::move(shape)), opset_(opset), model_(opset) {
    model_.input("x", shape_);
  }

  Recognizes& node(const std::string& type, std::vector<std::string> inputs,
                   const std::string& output, const AttributeList& attributes = {}) {
    for (std::string& input : inputs) {
      if (input.starts_with("c:")) input = number(std::stof(input.substr(2)));
    }
    model_.node(type, inputs, {output}, attributes);
    last_ = output;
    return *this;
  }
  // A mean, sum or maximum over the last dimension, as the opset says it.
  Recognizes& reduce(const std::string& type, const std::string& input, const std::string& output,
                     int64_t axis = -1) {
    if (opset_ < 18 && !(type == "ReduceSum" && opset_ >= 13))
      return node(type, {input}, output, {{"axes", Shape{axis}}});
    model_.constant(output + ".axes", ints({axis}));
    return node(type, {input, output + ".axes"}, output);
  }
  Recognizes& constant(const std::string& name, const Tensor& tensor) {
    model_.constant(name, tensor);
    return *this;
  }
  Recognizes& output(const std::string& name) {
    model_.output(name);
    return *this;
  }

  Types result(double tolerance = 1e-5) {
    Rng rng(80);
    if (!last_.empty()) model_.output(last_);
    const Graph before = model_.graph();
    return types(run_pass(
        before,
        [](Graph& graph) {
          HONE_RETURN_IF_ERROR(eliminate_common_subexpressions(graph));
          return recognize_patterns(graph);
        },
        {random_tensor(shape_, rng, -4, 4)}, tolerance));
  }

 private:
  // Returns numbers of rank 0, 1 and 3 alternately.
  std::string number(float value) {
    const std::string name = fmt::format("constant{}", ++constants_);
    const Shape shapes[] = {{}, {1}, {1, 1, 1}};
    model_.constant(name, floats(shapes[constants_ % 3], {value}));
    return name;
  }

  Shape shape_;
  int opset_;
  int constants_ = 0;
  std::string last_;
  TestModel model_;
};

TEST(recognize_patterns, gelu_by_erf_in_any_order_of_the_products) {
  const std::string root = std::to_string(std::sqrt(2.0)), inverse = "c:0.70710678";
  Recognizes as_bert;
  as_bert.node("Div", {"x", "c:" + root}, "a").node("Erf", {"a"}, "b");
  as_bert.node("Add", {"b", "c:1"}, "d")
      .node("Mul", {"x", "d"}, "e")
      .node("Mul", {"e", "c:0.5"}, "y");
  EXPECT_EQ(as_bert.result(), Types{"Gelu"});
  Recognizes half_first;
  half_first.node("Mul", {inverse, "x"}, "a").node("Erf", {"a"}, "b");
  half_first.node("Mul", {"x", "c:0.5"}, "h")
      .node("Add", {"c:1", "b"}, "d")
      .node("Mul", {"h", "d"}, "y");
  EXPECT_EQ(half_first.result(), Types{"Gelu"});
  Recognizes half_on_the_curve;
  half_on_the_curve.node("Mul", {"x", inverse}, "a")
      .node("Erf", {"a"}, "b")
      .node("Add", {"b", "c:1"}, "d");
  half_on_the_curve.node("Div", {"d", "c:2"}, "h").node("Mul", {"h", "x"}, "y");
  EXPECT_EQ(half_on_the_curve.result(), Types{"Gelu"});
}

TEST(recognize_patterns, gelu_by_tanh) {
  const auto finish = [](Recognizes& model) {
    model.node("Tanh", {"inner"}, "t").node("Add", {"t", "c:1"}, "u");
    model.node("Mul", {"x", "c:0.5"}, "h").node("Mul", {"h", "u"}, "y");
    return model.result(1e-5);
  };
  Recognizes by_pow;
  by_pow.node("Pow", {"x", "c:3"}, "p").node("Mul", {"p", "c:0.044715"}, "q");
  by_pow.node("Add", {"x", "q"}, "s").node("Mul", {"s", "c:0.7978845608"}, "inner");
  EXPECT_EQ(finish(by_pow), Types{"Gelu"});
  Recognizes factored;
  factored.node("Mul", {"x", "x"}, "p")
      .node("Mul", {"c:0.044715", "p"}, "q")
      .node("Add", {"q", "c:1"}, "s");
  factored.node("Mul", {"x", "c:0.7978845608"}, "r").node("Mul", {"r", "s"}, "inner");
  EXPECT_EQ(finish(factored), Types{"Gelu"});
  Recognizes another_factor;
  another_factor.node("Pow", {"x", "c:3"}, "p").node("Mul", {"p", "c:0.05"}, "q");
  another_factor.node("Add", {"x", "q"}, "s").node("Mul", {"s", "c:0.7978845608"}, "inner");
  EXPECT_EQ(finish(another_factor).back(), "Mul");
}

TEST(recognize_patterns, gates_of_an_operand_by_itself) {
  Recognizes silu, quick, written_out, hard, by_clip, by_hard_sigmoid, mish, softplus;
  EXPECT_EQ(silu.node("Sigmoid", {"x"}, "s").node("Mul", {"s", "x"}, "y").result(), Types{"Swish"});
  quick.node("Mul", {"x", "c:1.702"}, "a").node("Sigmoid", {"a"}, "s").node("Mul", {"x", "s"}, "y");
  EXPECT_EQ(quick.result(), Types{"Swish"});
  written_out.node("Neg", {"x"}, "n").node("Exp", {"n"}, "e").node("Add", {"e", "c:1"}, "d");
  written_out.node("Div", {"c:1", "d"}, "s").node("Mul", {"x", "s"}, "y");
  EXPECT_EQ(written_out.result(), Types{"Swish"});
  hard.node("Add", {"x", "c:3"}, "a")
      .constant("zero", floats({}, {0}))
      .constant("six", floats({}, {6}));
  hard.node("Clip", {"a", "zero", "six"}, "b")
      .node("Mul", {"x", "b"}, "d")
      .node("Div", {"d", "c:6"}, "y");
  EXPECT_EQ(hard.result(), Types{"HardSwish"});
  by_clip.node("Add", {"x", "c:3"}, "a")
      .constant("zero", floats({}, {0}))
      .constant("six", floats({}, {6}));
  by_clip.node("Clip", {"a", "zero", "six"}, "b")
      .node("Div", {"b", "c:6"}, "d")
      .node("Mul", {"d", "x"}, "y");
  EXPECT_EQ(by_clip.result(), Types{"HardSwish"});
  by_hard_sigmoid.node("HardSigmoid", {"x"}, "s", {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
  EXPECT_EQ(by_hard_sigmoid.node("Mul", {"x", "s"}, "y").result(), Types{"HardSwish"});
  mish.node("Exp", {"x"}, "e").node("Add", {"c:1", "e"}, "a").node("Log", {"a"}, "p");
  EXPECT_EQ(mish.node("Tanh", {"p"}, "t").node("Mul", {"x", "t"}, "y").result(), Types{"Mish"});
  softplus.node("Exp", {"x"}, "e").node("Add", {"c:1", "e"}, "a").node("Log", {"a"}, "y");
  EXPECT_EQ(softplus.result(), Types{"Softplus"});
}

TEST(recognize_patterns, a_part_with_another_use_stays) {
  Recognizes silu;
  silu.node("Sigmoid", {"x"}, "s").output("s").node("Mul", {"s", "x"}, "y");
  EXPECT_EQ(silu.result(), (Types{"Sigmoid", "Mul"}));
  Recognizes softmax;
  softmax.node("Exp", {"x"}, "e")
      .reduce("ReduceSum", "e", "s")
      .output("s")
      .node("Div", {"e", "s"}, "y");
  EXPECT_EQ(softmax.result(), (Types{"Exp", "ReduceSum", "Div"}));
}

Recognizes layer_norm(int opset, const std::string& root, Rng& rng) {
  Recognizes model({2, 3, 8}, opset);
  model.reduce("ReduceMean", "x", "mean").node("Sub", {"x", "mean"}, "d");
  if (root == "Sqrt") {
    model.node("Pow", {"d", "c:2"}, "q");
  } else {
    model.node("Sub", {"x", "mean"}, "again").node("Mul", {"again", "d"}, "q");
  }
  model.reduce("ReduceMean", "q", "variance").node("Add", {"variance", "c:0.00001"}, "v");
  if (root == "Pow") {
    model.node("Pow", {"v", "c:-0.5"}, "r").node("Mul", {"d", "r"}, "n");
  } else {
    model.node("Sqrt", {"v"}, "r");
    if (root == "Reciprocal") model.node("Reciprocal", {"r"}, "i").node("Mul", {"i", "d"}, "n");
    if (root == "Sqrt") model.node("Div", {"d", "r"}, "n");
  }
  model.constant("scale", random_tensor({8}, rng)).constant("bias", random_tensor({8}, rng));
  model.node("Mul", {"scale", "n"}, "m").node("Add", {"m", "bias"}, "y");
  return model;
}

TEST(recognize_patterns, layer_normalization_of_every_opset) {
  Rng rng(81);
  for (const int opset : {11, 13, 17, 18}) {
    for (const std::string root : {"Sqrt", "Reciprocal", "Pow"}) {
      EXPECT_EQ(layer_norm(opset, root, rng).result(), Types{"LayerNormalization"})
          << opset << " " << root;
    }
  }
}

TEST(recognize_patterns, a_normalisation_along_channels_stays) {
  Recognizes model;
  model.reduce("ReduceMean", "x", "mean", 1).node("Sub", {"x", "mean"}, "d");
  model.node("Mul", {"d", "d"}, "q").reduce("ReduceMean", "q", "variance", 1);
  model.node("Add", {"variance", "c:0.00001"}, "v")
      .node("Sqrt", {"v"}, "r")
      .node("Div", {"d", "r"}, "y");
  EXPECT_EQ(model.result().size(), 7u);
}

TEST(recognize_patterns, root_mean_square_normalization) {
  Rng rng(82);
  for (const bool divides : {false, true}) {
    Recognizes model;
    model.node("Pow", {"x", "c:2"}, "q").reduce("ReduceMean", "q", "m");
    model.node("Add", {"m", "c:0.000001"}, "v").node("Sqrt", {"v"}, "r");
    if (divides) model.node("Div", {"x", "r"}, "n");
    if (!divides) model.node("Div", {"c:1", "r"}, "i").node("Mul", {"x", "i"}, "n");
    model.constant("scale", random_tensor({1, 1, 8}, rng)).node("Mul", {"n", "scale"}, "y");
    EXPECT_EQ(model.result(), Types{"RMSNormalization"});
  }
}

TEST(recognize_patterns, softmax_with_and_without_its_maximum) {
  for (const int64_t axis : {-1, 1}) {
    Recognizes plain, shifted;
    plain.node("Exp", {"x"}, "e").reduce("ReduceSum", "e", "s", axis).node("Div", {"e", "s"}, "y");
    EXPECT_EQ(plain.result(), Types{"Softmax"});
    shifted.reduce("ReduceMax", "x", "m", axis)
        .node("Sub", {"x", "m"}, "d")
        .node("Exp", {"d"}, "e");
    shifted.reduce("ReduceSum", "e", "s", axis)
        .node("Div", {"e", "s"}, "p")
        .node("Log", {"p"}, "y");
    EXPECT_EQ(shifted.result(), Types{"LogSoftmax"});
  }
}

}  // namespace
}  // namespace hone::graph
