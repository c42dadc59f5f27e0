#include "hone/graph/passes/affine.h"

#include <algorithm>

namespace hone::graph {
namespace {

// The channel of the result and the channel of the data that an element of the weights belongs to.
struct Place {
  int64_t out, in;
};

class Places {
 public:
  Places(const Node& product, const Shape& weight) : product_(product), weight_(weight) {
    group_ = product.attributes.integer("group", 1);
    for (size_t d = 2; d < weight.size(); ++d) inner_ *= weight[d];
  }

  [[nodiscard]] int64_t outputs() const {
    if (product_.type == "Conv") return weight_[0];
    return weight_[transposed() ? 0 : 1];
  }
  [[nodiscard]] int64_t inputs() const {
    if (product_.type == "Conv") return weight_[1] * group_;
    return weight_[transposed() ? 1 : 0];
  }
  [[nodiscard]] Place operator()(int64_t flat) const {
    const int64_t row = flat / inner_ / weight_[1], column = flat / inner_ % weight_[1];
    if (product_.type == "Conv") return {row, row / (weight_[0] / group_) * weight_[1] + column};
    return transposed() ? Place{row, column} : Place{column, row};
  }

 private:
  [[nodiscard]] bool transposed() const { return product_.attributes.integer("transB", 0) != 0; }

  const Node& product_;
  const Shape& weight_;
  int64_t group_ = 1, inner_ = 1;
};

// Returns whether every element of the result uses all weights, which padding would prevent.
bool sees_no_padding(const Node& product) {
  if (product.type == "Gemm") return true;
  if (product.type != "Conv") return false;
  const Shape pads = product.attributes.integers("pads");
  const std::string automatic = product.attributes.text("auto_pad", "NOTSET");
  return (automatic == "NOTSET" || automatic == "VALID") &&
         std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; });
}

const Tensor* bias_of(const RewriteSite& site, const Node& product) {
  return product.has_input(2) ? &*site.graph.value(product.inputs[2]).constant : nullptr;
}

// Returns the product's bias with scales and shifts per channel of the result applied.
std::optional<Tensor> shifted_bias(const Tensor* bias, const std::vector<double>& scale,
                                   const std::vector<double>& shift, DType dtype) {
  const bool any = std::any_of(shift.begin(), shift.end(), [](double s) { return s != 0; });
  if (bias == nullptr && !any) return std::nullopt;
  Tensor result(dtype, {static_cast<int64_t>(shift.size())});
  for (int64_t c = 0; c < result.size(); ++c) {
    const auto i = static_cast<size_t>(c);
    result.set(c, (bias != nullptr ? bias->at(c) : 0) * scale[i] + shift[i]);
  }
  return result;
}

}  // namespace

bool Affine::shifts() const {
  return std::any_of(shift.begin(), shift.end(), [](double s) { return s != 0; });
}

bool has_weights(const RewriteSite& site, const Node& node) {
  const bool matrix = node.type == "Gemm" || node.type == "MatMul";
  if (!matrix && node.type != "Conv") return false;
  const Value& weight = site.graph.value(node.inputs[1]);
  if (!weight.constant || (matrix && weight.shape.size() != 2)) return false;
  if (weight.dtype != DType::kF32 && weight.dtype != DType::kF64) return false;
  // Weights that others read would be there twice.
  if (site.uses.readers[static_cast<size_t>(node.inputs[1])].size() != 1) return false;
  if (node.type == "Gemm" &&
      (node.attributes.number("beta", 1) != 1 || node.attributes.integer("transA", 0) != 0))
    return false;
  if (!node.has_input(2)) return true;
  const Value& bias = site.graph.value(node.inputs[2]);
  return bias.constant && bias.shape == Shape{Places(node, weight.shape).outputs()};
}

size_t channel_dimension(const Graph& graph, const Node& product, ValueId value) {
  const bool matrix = product.type == "Gemm" || product.type == "MatMul";
  return matrix ? graph.value(value).shape.size() - 1 : 1;
}

std::optional<Weights> scaled_after(const RewriteSite& site, const Node& product,
                                    const Affine& affine) {
  const Tensor& weight = *site.graph.value(product.inputs[1]).constant;
  const Places places(product, weight.shape());
  if (places.outputs() != static_cast<int64_t>(affine.scale.size())) return std::nullopt;
  if (product.type == "MatMul" && affine.shifts()) return std::nullopt;
  Weights result{weight.clone(),
                 shifted_bias(bias_of(site, product), affine.scale, affine.shift, weight.dtype())};
  for (int64_t i = 0; i < weight.size(); ++i)
    result.weight.set(i, weight.at(i) * affine.scale[static_cast<size_t>(places(i).out)]);
  return result;
}

std::optional<Weights> scaled_before(const RewriteSite& site, const Node& product,
                                     const Affine& affine) {
  const Tensor& weight = *site.graph.value(product.inputs[1]).constant;
  const Places places(product, weight.shape());
  if (places.inputs() != static_cast<int64_t>(affine.scale.size())) return std::nullopt;
  if (affine.shifts() && !sees_no_padding(product)) return std::nullopt;
  const auto outputs = static_cast<size_t>(places.outputs());
  std::vector<double> shift(outputs, 0);
  Weights result{weight.clone(), std::nullopt};
  const double alpha = product.type == "Gemm" ? product.attributes.number("alpha", 1) : 1;
  for (int64_t i = 0; i < weight.size(); ++i) {
    const auto [out, in] = places(i);
    result.weight.set(i, weight.at(i) * affine.scale[static_cast<size_t>(in)]);
    shift[static_cast<size_t>(out)] += alpha * weight.at(i) * affine.shift[static_cast<size_t>(in)];
  }
  result.bias =
      shifted_bias(bias_of(site, product), std::vector<double>(outputs, 1), shift, weight.dtype());
  return result;
}

Status replace_by_product(const RewriteSite& site, const Node& product, ValueId data,
                          Weights weights) {
  const Node like = product;
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    std::vector<ValueId> operands = {data, c.constant(std::move(weights.weight))};
    if (weights.bias) operands.push_back(c.constant(std::move(*weights.bias)));
    return c.add_like(like, operands);
  }));
  return ok_status();
}

}  // namespace hone::graph
