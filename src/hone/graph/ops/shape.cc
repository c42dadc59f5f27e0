// Operators that make constants: of attributes (Constant, ConstantOfShape) or of shapes (Shape,
// Size).
#include <algorithm>

#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"
#include "hone/tensor/fill.h"

namespace hone::graph {
namespace {

template <typename T>
Tensor list_tensor(DType dtype, const std::vector<T>& values, bool scalar) {
  Tensor tensor(dtype, scalar ? Shape{} : Shape{static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<T>().begin());
  return tensor;
}

std::optional<Tensor> constant_value(const Attributes& attributes) {
  if (const auto* t = attributes.find<Tensor>("value")) return *t;
  if (const auto* f = attributes.find<float>("value_float"))
    return list_tensor<float>(DType::kF32, {*f}, true);
  if (const auto* f = attributes.find<std::vector<float>>("value_floats"))
    return list_tensor(DType::kF32, *f, false);
  if (const auto* i = attributes.find<int64_t>("value_int"))
    return list_tensor<int64_t>(DType::kI64, {*i}, true);
  if (const auto* i = attributes.find<std::vector<int64_t>>("value_ints"))
    return list_tensor(DType::kI64, *i, false);
  return std::nullopt;
}

Status infer_constant(InferContext& c) {
  const auto value = constant_value(c.attributes());
  return value ? c.set_constant(0, *value) : c.unsupported("no value of a known type");
}

Status infer_constant_of_shape(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(Shape shape, c.integers(0, "the shape"));
  const Tensor* value = c.attributes().find<Tensor>("value");
  if (value != nullptr && value->size() != 1)
    return c.fail("a value of shape {}", to_string(value->shape()));
  return c.set(0, value ? value->dtype() : DType::kF32, std::move(shape));
}

Result<std::vector<Tensor>> fold_constant_of_shape(const Graph& graph, const Node& node) {
  const Value& result = graph.value(node.outputs[0]);
  Tensor tensor(result.dtype, result.shape);
  const Tensor* value = node.attributes.find<Tensor>("value");
  if (value != nullptr) fill_with(tensor, *value);
  return std::vector<Tensor>{std::move(tensor)};
}

// The dimensions from start to end, which count like Python's.
std::pair<int64_t, int64_t> shape_range(const Attributes& attributes, int64_t rank) {
  const auto place = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  return {place(attributes.integer("start", 0)), place(attributes.integer("end", rank))};
}

Status infer_shape(InferContext& c) {
  const auto [start, end] = shape_range(c.attributes(), c.rank(0));
  return c.set(0, DType::kI64, {std::max<int64_t>(0, end - start)});
}

// If the shape of a value depends on data, the result is its extents.
Status expand_shape(ExpandContext& c) {
  const ValueId extents = c.extents_of(c.input(0));
  if (extents == kNoValue) {
    c.decline();
    return ok_status();
  }
  const auto [start, end] = shape_range(c.attributes(), c.rank(0));
  c.result(0, c.slice(extents, 0, start, end));
  return ok_status();
}

Result<std::vector<Tensor>> fold_shape(const Graph& graph, const Node& node) {
  const Shape& shape = graph.value(node.inputs[0]).shape;
  const auto [start, end] = shape_range(node.attributes, static_cast<int64_t>(shape.size()));
  return std::vector<Tensor>{
      list_tensor(DType::kI64, Shape(shape.begin() + start, shape.begin() + end), false)};
}

Status infer_size(InferContext& c) { return c.set(0, DType::kI64, {}); }

Result<std::vector<Tensor>> fold_size(const Graph& graph, const Node& node) {
  return std::vector<Tensor>{
      list_tensor<int64_t>(DType::kI64, {num_elements(graph.value(node.inputs[0]).shape)}, true)};
}

}  // namespace

std::span<const Op> shape_ops() {
  static const Op ops[] = {
      {.name = "Constant",
       .min_inputs = 0,
       .max_inputs = 0,
       .attributes = "value:t value_float:f value_floats:fs value_int:i value_ints:is",
       .infer = infer_constant},
      {.name = "ConstantOfShape",
       .attributes = "value:t",
       .infer = infer_constant_of_shape,
       .fold = fold_constant_of_shape},
      {.name = "Shape",
       .attributes = "start:i end:i",
       .infer = infer_shape,
       .expand = expand_shape,
       .fold = fold_shape,
       .folds_shapes = true},
      {.name = "Size", .infer = infer_size, .fold = fold_size, .folds_shapes = true},
  };
  return ops;
}

}  // namespace hone::graph
