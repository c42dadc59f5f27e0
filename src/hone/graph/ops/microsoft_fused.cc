// Operators of com.microsoft that ONNX Runtime's optimizer makes of a product or an activation and
// its neighbours. Each becomes the operators that it stands for (ONNX Runtime,
// ContribOperators.md).
#include <limits>

#include "hone/graph/ops/microsoft.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/window.h"

namespace hone::graph {
namespace {

// An activation behind a product, with the parameters that are given, in order.
struct Fused {
  std::string name;
  std::vector<std::optional<float>> parameters;
  [[nodiscard]] float parameter(size_t i, float otherwise) const {
    return i < parameters.size() ? parameters[i].value_or(otherwise) : otherwise;
  }
};

Result<ValueId> activated(ExpandContext& c, ValueId x, const Fused& f) {
  if (f.name.empty()) return x;
  for (const char* plain : {"Relu", "Tanh", "Sigmoid", "Softplus", "Softsign", "HardSwish"}) {
    if (f.name == plain) return c.add(plain, {x});
  }
  if (f.name == "LeakyRelu") return c.add("LeakyRelu", {x}, {{"alpha", f.parameter(0, 0.01F)}});
  if (f.name == "Elu") return c.add("Elu", {x}, {{"alpha", f.parameter(0, 1)}});
  if (f.name == "ThresholdedRelu")
    return c.add("ThresholdedRelu", {x}, {{"alpha", f.parameter(0, 1)}});
  if (f.name == "HardSigmoid")
    return c.add("HardSigmoid", {x},
                 {{"alpha", f.parameter(0, 0.2F)}, {"beta", f.parameter(1, 0.5F)}});
  if (f.name == "Clip") {
    constexpr float kLargest = std::numeric_limits<float>::max();
    const DType type = c.dtype_of(x);
    return c.add("Clip", {x, c.scalar(type, static_cast<double>(f.parameter(0, -kLargest))),
                          c.scalar(type, static_cast<double>(f.parameter(1, kLargest)))});
  }
  return c.unsupported("the activation '{}'", f.name);
}

Fused fused_convolution(const ExpandContext& c) {
  Fused f = {c.attributes().text("activation", ""), {}};
  for (const float p : c.attributes().get<std::vector<float>>("activation_params", {}))
    f.parameters.emplace_back(p);
  return f;
}

// act(conv(X, W) + B + Z)
Status expand_fused_conv(ExpandContext& c) {
  ValueId y = add_convolution(c, "Conv", c.input(0), c.input(1), c.input(2));
  if (c.has(3)) {
    if (c.status().ok() && c.shape(3) != c.shape_of(y))
      return c.fail("Z of shape {} for a result of shape {}", to_string(c.shape(3)),
                    to_string(c.shape_of(y)));
    y = c.binary("Add", y, c.input(3));
  }
  HONE_ASSIGN_OR_RETURN(y, activated(c, y, fused_convolution(c)));
  c.result(0, y);
  return ok_status();
}

// Channels stand last: in the data [N, H, W, C], the weights [M, kH, kW, C / group] and the result.
Status expand_nhwc_conv(ExpandContext& c) {
  const int64_t rank = c.rank(0);
  if (rank < 3 || c.rank(1) != rank)
    return c.fail("data of shape {} and weights of shape {}", to_string(c.shape(0)),
                  to_string(c.shape(1)));
  const ValueId y = add_convolution(c, "Conv", channels_second(c, c.input(0), rank),
                                    channels_second(c, c.input(1), rank), c.input(2));
  c.result(0, channels_last(c, y, rank));
  return ok_status();
}

Status expand_fused_gemm(ExpandContext& c) {
  const Attributes& a = c.attributes();
  Fused f = {a.text("activation", ""), {}};
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    const float* given = a.find<float>(name);
    f.parameters.push_back(given == nullptr ? std::nullopt : std::optional(*given));
  }
  const ValueId product = c.add("Gemm", {c.input(0), c.input(1), c.input(2)},
                                {{"alpha", a.number("alpha", 1)},
                                 {"beta", a.number("beta", 1)},
                                 {"transA", a.integer("transA", 0)},
                                 {"transB", a.integer("transB", 0)}});
  HONE_ASSIGN_OR_RETURN(const ValueId y, activated(c, product, f));
  c.result(0, y);
  return ok_status();
}

// An operand of FusedMatMul as MatMul reads it. `batch` moves the first dimension to the rows'
// place, `matrix` then swaps rows and columns; a vector stays as it is.
ValueId oriented(ExpandContext& c, size_t i, bool matrix, bool batch) {
  const int64_t rank = c.rank(i);
  if (rank < 2) return c.input(i);
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < rank; ++d) perm.push_back(d);
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (matrix) std::swap(perm[static_cast<size_t>(rank - 2)], perm[static_cast<size_t>(rank - 1)]);
  return c.transpose(c.input(i), perm);
}

// alpha * A' B'
Status expand_fused_matmul(ExpandContext& c) {
  const Attributes& a = c.attributes();
  const auto flag = [&](const char* name) { return a.integer(name, 0) != 0; };
  ValueId y = c.binary("MatMul", oriented(c, 0, flag("transA"), flag("transBatchA")),
                       oriented(c, 1, flag("transB"), flag("transBatchB")));
  const float alpha = a.number("alpha", 1);
  if (alpha != 1) y = c.binary("Mul", y, static_cast<double>(alpha));
  c.result(0, y);
  return ok_status();
}

// x + bias, where the operand is given.
ValueId biased(ExpandContext& c, size_t i) {
  return c.has(i) ? c.binary("Add", c.input(0), c.input(i)) : c.input(0);
}

Status expand_gelu(ExpandContext& c) {
  c.result(0, c.add("Gelu", {biased(c, 1)}));
  return ok_status();
}

Status expand_fast_gelu(ExpandContext& c) {
  c.result(0, c.add("Gelu", {biased(c, 1)}, {{"approximate", std::string("tanh")}}));
  return ok_status();
}

// x * sigmoid(alpha * x)
Status expand_quick_gelu(ExpandContext& c) {
  c.result(0, c.add("Swish", {c.input(0)}, {{"alpha", c.attributes().number("alpha", 1.702F)}}));
  return ok_status();
}

// The first half of x + bias along the last dimension times the GELU of the second.
Status expand_bias_split_gelu(ExpandContext& c) {
  if (c.rank(0) < 1 || c.shape(0).back() % 2 != 0)
    return c.fail("data of shape {}, expected an even last extent", to_string(c.shape(0)));
  const ValueId x = biased(c, 1);
  const int64_t axis = c.rank(0) - 1, half = c.shape(0).back() / 2;
  const ValueId gate = c.add("Gelu", {c.slice(x, axis, half, 2 * half)});
  c.result(0, c.binary("Mul", c.slice(x, axis, 0, half), gate));
  return ok_status();
}

// X + bias + skip
Status expand_bias_add(ExpandContext& c) {
  c.result(0, c.binary("Add", biased(c, 1), c.input(2)));
  return ok_status();
}

}  // namespace

std::span<const Op> microsoft_fused_ops() {
  static const Op ops[] = {
      expanded_op(
          "com.microsoft.FusedConv", 1, {2, 4, 1},
          "activation:s activation_params:fs auto_pad:s dilations:is group:i kernel_shape:is "
          "pads:is strides:is",
          expand_fused_conv),
      expanded_op("com.microsoft.NhwcConv", 1, {2, 3, 1}, kConvolutionAttributes, expand_nhwc_conv),
      expanded_op(
          "com.microsoft.FusedGemm", 1, {2, 3, 1},
          "activation:s activation_alpha:f activation_beta:f activation_gamma:f alpha:f beta:f "
          "transA:i transB:i",
          expand_fused_gemm),
      expanded_op("com.microsoft.FusedMatMul", 1, {2, 2, 1},
                  "alpha:f transA:i transB:i transBatchA:i transBatchB:i", expand_fused_matmul),
      expanded_op("com.microsoft.TransposeMatMul", 1, {2, 2, 1}, "alpha:f transA:i transB:i",
                  expand_fused_matmul),
      expanded_op("com.microsoft.Gelu", 1, {1, 1, 1}, "", expand_gelu),
      expanded_op("com.microsoft.BiasGelu", 1, {2, 2, 1}, "", expand_gelu),
      expanded_op("com.microsoft.FastGelu", 1, {1, 2, 1}, "", expand_fast_gelu),
      expanded_op("com.microsoft.QuickGelu", 1, {1, 1, 1}, "alpha:f", expand_quick_gelu),
      expanded_op("com.microsoft.BiasSplitGelu", 1, {2, 2, 1}, "", expand_bias_split_gelu),
      expanded_op("com.microsoft.BiasAdd", 1, {3, 3, 1}, "", expand_bias_add),
  };
  return ops;
}

}  // namespace hone::graph
