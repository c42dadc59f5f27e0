// Operators of com.microsoft on bytes that stand for numbers by a scale and a zero point, as ONNX
// Runtime's quantiser writes them (format QOperator). Each is the operator on these numbers (ONNX
// Runtime, ContribOperators.md). What its CPU provider rounds with the zero point added is so here.
#include "hone/graph/ops/integer_product.h"
#include "hone/graph/ops/microsoft.h"
#include "hone/graph/ops/microsoft_quantized.h"
#include "hone/graph/ops/quantize.h"

namespace hone::graph {
namespace {

// Checks a scale and the zero point behind it, which may be missing, of bytes of the type.
Status check_scale(const ExpandContext& c, size_t i, DType type) {
  if (!c.has(i)) return c.fail("operand {}, a scale, is missing", i);
  if (c.dtype(i) != DType::kF32 || num_elements(c.shape(i)) != 1)
    return c.fail("operand {}, a scale, is {} {}, expected one f32", i, dtype_name(c.dtype(i)),
                  to_string(c.shape(i)));
  if (c.has(i + 1) && (c.dtype(i + 1) != type || num_elements(c.shape(i + 1)) != 1))
    return c.fail("operand {}, a zero point, is {} {}, expected one {}", i + 1,
                  dtype_name(c.dtype(i + 1)), to_string(c.shape(i + 1)), dtype_name(type));
  return ok_status();
}

Status check_quantized(const ExpandContext& c, size_t i) {
  if (!c.has(i)) return c.fail("operand {} is missing", i);
  HONE_RETURN_IF_ERROR(check_bytes(c, i));
  return check_scale(c, i + 1, c.dtype(i));
}

// Returns what the bytes of operand i stand for, by the scale and the zero point behind it.
Result<ValueId> numbers_of(ExpandContext& c, size_t i) {
  HONE_RETURN_IF_ERROR(check_quantized(c, i));
  return c.add("DequantizeLinear", {c.input(i), c.input(i + 1), c.input(i + 2)});
}

// Returns the same without the scale, so whole numbers as floats.
Result<ValueId> unscaled_numbers_of(ExpandContext& c, size_t i) {
  HONE_RETURN_IF_ERROR(check_quantized(c, i));
  const ValueId x = c.cast(c.input(i), DType::kF32);
  if (!c.has(i + 2)) return x;
  return c.binary("Sub", x, c.cast(c.reshape(c.input(i + 2), {}), DType::kF32));
}

ValueId one_scale(ExpandContext& c, size_t i) { return c.reshape(c.input(i), {}); }
ValueId ratio(ExpandContext& c, size_t scale, size_t result_scale) {
  return c.binary("Div", one_scale(c, scale), one_scale(c, result_scale));
}

// Returns numbers as bytes of the type by the scale at operand `scale` and the zero point behind
// it.
Result<ValueId> in_bytes(ExpandContext& c, ValueId y, size_t scale, DType type) {
  HONE_RETURN_IF_ERROR(check_scale(c, scale, type));
  return c.add("QuantizeLinear", {y, c.input(scale), c.input(scale + 1)},
               {{"output_dtype", static_cast<int64_t>(type)}});
}
Status set_bytes(ExpandContext& c, ValueId y, size_t scale, DType type) {
  HONE_ASSIGN_OR_RETURN(const ValueId bytes, in_bytes(c, y, scale, type));
  c.result(0, bytes);
  return ok_status();
}

// Sets the result to numbers in units of its scale, with the zero point behind that: they are
// rounded before or after that is added.
Status set_rounded(ExpandContext& c, ValueId y, size_t scale, bool after) {
  const DType type = c.dtype(0);
  ValueId zero = c.has(scale + 1) ? c.reshape(c.input(scale + 1), {}) : kNoValue;
  if (after && zero != kNoValue) y = c.binary("Add", y, c.cast(zero, DType::kF32));
  if (after) zero = kNoValue;
  c.result(0, saturated(c, y, zero, type));
  return ok_status();
}

Status check_binary(const ExpandContext& c) {
  constexpr size_t kRight = 3, kScale = 6;
  HONE_RETURN_IF_ERROR(check_scale(c, kScale, c.dtype(0)));
  if (c.dtype(kRight) != c.dtype(0))
    return c.fail("operands of types {} and {}, expected one type", dtype_name(c.dtype(0)),
                  dtype_name(c.dtype(kRight)));
  return ok_status();
}

Status expand_qlinear_add(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId a, unscaled_numbers_of(c, 0));
  HONE_ASSIGN_OR_RETURN(const ValueId b, unscaled_numbers_of(c, 3));
  HONE_RETURN_IF_ERROR(check_binary(c));
  const ValueId left = c.binary("Mul", a, ratio(c, 1, 6));
  const ValueId right = c.binary("Mul", b, ratio(c, 4, 6));
  return set_rounded(c, c.binary("Add", left, right), 6, true);
}

Status expand_qlinear_mul(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId a, unscaled_numbers_of(c, 0));
  HONE_ASSIGN_OR_RETURN(const ValueId b, unscaled_numbers_of(c, 3));
  HONE_RETURN_IF_ERROR(check_binary(c));
  const ValueId scales = c.binary("Mul", one_scale(c, 1), one_scale(c, 4));
  const ValueId factor = c.binary("Div", scales, one_scale(c, 6));
  return set_rounded(c, c.binary("Mul", c.binary("Mul", a, b), factor), 6, true);
}

Status expand_qlinear_sigmoid(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId x, numbers_of(c, 0));
  return set_bytes(c, c.add("Sigmoid", {x}), 3, c.dtype(0));
}

Status expand_qlinear_leaky_relu(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId x, numbers_of(c, 0));
  const float alpha = c.attributes().number("alpha", 0.01F);
  return set_bytes(c, c.add("LeakyRelu", {x}, {{"alpha", alpha}}), 3, c.dtype(0));
}

// Before opset 13, Softmax is one of rows to which all dimensions from the axis on belong.
Status expand_qlinear_softmax(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId x, numbers_of(c, 0));
  const int64_t given = c.attributes().integer("axis", -1);
  const auto axis = normalize_axis(given, c.rank(0));
  if (!axis) return c.fail("axis {} of data of shape {}", given, to_string(c.shape(0)));
  if (!c.attributes().has("opset"))
    return c.fail("the attribute 'opset', which says what the axis means, is missing");
  if (c.attributes().integer("opset", 0) >= 13)
    return set_bytes(c, c.add("Softmax", {x}, {{"axis", *axis}}), 3, c.dtype(0));
  const Shape shape = c.shape(0);
  const Shape outer(shape.begin(), shape.begin() + *axis);
  const Shape inner(shape.begin() + *axis, shape.end());
  const ValueId rows = c.reshape(x, {num_elements(outer), num_elements(inner)});
  const ValueId y = c.add("Softmax", {rows}, {{"axis", int64_t{1}}});
  return set_bytes(c, c.reshape(y, shape), 3, c.dtype(0));
}

Status expand_qlinear_where(ExpandContext& c) {
  if (c.dtype(0) != DType::kBool) return c.fail("a condition of type {}", dtype_name(c.dtype(0)));
  HONE_ASSIGN_OR_RETURN(const ValueId x, numbers_of(c, 1));
  HONE_ASSIGN_OR_RETURN(const ValueId y, numbers_of(c, 4));
  if (c.dtype(4) != c.dtype(1))
    return c.fail("X of type {} and Y of type {}, expected one type", dtype_name(c.dtype(1)),
                  dtype_name(c.dtype(4)));
  return set_bytes(c, c.add("Where", {c.input(0), x, y}), 7, c.dtype(1));
}

// The scale and zero point of the result come first, then each part with its own.
Status expand_qlinear_concat(ExpandContext& c) {
  constexpr size_t kFirst = 2;
  if (c.num_inputs() < kFirst + 3 || (c.num_inputs() - kFirst) % 3 != 0 || !c.has(1))
    return c.fail("{} operands, expected a scale, a zero point, and three for each part",
                  c.num_inputs());
  if (!c.attributes().has("axis")) return c.fail("the attribute 'axis' is missing");
  std::vector<ValueId> parts;
  for (size_t i = kFirst; i < c.num_inputs(); i += 3) {
    HONE_ASSIGN_OR_RETURN(const ValueId x, numbers_of(c, i));
    if (c.dtype(i) != c.dtype(1))
      return c.fail("operand {} of type {} for a result of type {}", i, dtype_name(c.dtype(i)),
                    dtype_name(c.dtype(1)));
    HONE_ASSIGN_OR_RETURN(const ValueId part, in_bytes(c, x, 0, c.dtype(1)));
    parts.push_back(part);
  }
  c.result(0, c.add("Concat", parts, {{"axis", c.attributes().integer("axis", 0)}}));
  return ok_status();
}

// ---- means ----

bool has_channels_last(const ExpandContext& c) {
  return c.attributes().integer("channels_last", 0) != 0;
}

// Whole numbers with the channels second.
Result<ValueId> pooled_data(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId x, unscaled_numbers_of(c, 0));
  HONE_RETURN_IF_ERROR(check_scale(c, 3, c.dtype(0)));
  if (c.rank(0) < 3)
    return c.fail("data of shape {}, expected N, C and spatial dimensions", to_string(c.shape(0)));
  return has_channels_last(c) ? channels_second(c, x, c.rank(0)) : x;
}

Status set_means(ExpandContext& c, ValueId y, bool after) {
  if (has_channels_last(c)) y = channels_last(c, y, c.rank(0));
  return set_rounded(c, c.binary("Mul", y, ratio(c, 1, 3)), 3, after);
}

Status expand_qlinear_average_pool(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId x, pooled_data(c));
  const Attributes& a = c.attributes();
  const ValueId y = c.add("AveragePool", {x},
                          {{"auto_pad", a.text("auto_pad", "NOTSET")},
                           {"ceil_mode", a.integer("ceil_mode", 0)},
                           {"count_include_pad", a.integer("count_include_pad", 0)},
                           {"kernel_shape", a.integers("kernel_shape")},
                           {"pads", a.integers("pads")},
                           {"strides", a.integers("strides")}});
  return set_means(c, y, true);
}

Status expand_qlinear_global_average_pool(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId x, pooled_data(c));
  return set_means(c, c.add("GlobalAveragePool", {x}), false);
}

Status expand_qlinear_reduce_mean(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId x, unscaled_numbers_of(c, 0));
  HONE_RETURN_IF_ERROR(check_scale(c, 3, c.dtype(0)));
  const ValueId mean = c.reduce("ReduceMean", x, c.attributes().integers("axes"),
                                c.attributes().integer("keepdims", 1) != 0);
  return set_rounded(c, c.binary("Mul", mean, ratio(c, 1, 3)), 3, false);
}

// MaxPool of bytes whose channels stand last; the largest byte is the largest number.
Status expand_nhwc_max_pool(ExpandContext& c) {
  if (c.rank(0) < 3)
    return c.fail("data of shape {}, expected N, spatial dimensions and C", to_string(c.shape(0)));
  const Attributes& a = c.attributes();
  const ValueId y = c.add("MaxPool", {channels_second(c, c.input(0), c.rank(0))},
                          {{"auto_pad", a.text("auto_pad", "NOTSET")},
                           {"ceil_mode", a.integer("ceil_mode", 0)},
                           {"dilations", a.integers("dilations")},
                           {"kernel_shape", a.integers("kernel_shape")},
                           {"pads", a.integers("pads")},
                           {"strides", a.integers("strides")}});
  c.result(0, channels_last(c, y, c.rank(0)));
  return ok_status();
}

}  // namespace

std::span<const Op> microsoft_qlinear_ops() {
  static const Op ops[] = {
      expanded_op("com.microsoft.QLinearAdd", 1, {2, 8, 1}, "", expand_qlinear_add),
      expanded_op("com.microsoft.QLinearMul", 1, {2, 8, 1}, "", expand_qlinear_mul),
      expanded_op("com.microsoft.QLinearSigmoid", 1, {2, 5, 1}, "", expand_qlinear_sigmoid),
      expanded_op("com.microsoft.QLinearLeakyRelu", 1, {2, 5, 1}, "alpha:f",
                  expand_qlinear_leaky_relu),
      expanded_op("com.microsoft.QLinearSoftmax", 1, {2, 5, 1}, "axis:i opset:i",
                  expand_qlinear_softmax),
      expanded_op("com.microsoft.QLinearWhere", 1, {3, 9, 1}, "", expand_qlinear_where),
      expanded_op("com.microsoft.QLinearConcat", 1, {5, 1 << 16, 1}, "axis:i",
                  expand_qlinear_concat),
      expanded_op("com.microsoft.QLinearAveragePool", 1, {2, 5, 1},
                  "auto_pad:s ceil_mode:i channels_last:i count_include_pad:i kernel_shape:is "
                  "pads:is strides:is",
                  expand_qlinear_average_pool),
      expanded_op("com.microsoft.QLinearGlobalAveragePool", 1, {2, 5, 1}, "channels_last:i",
                  expand_qlinear_global_average_pool),
      expanded_op("com.microsoft.QLinearReduceMean", 1, {2, 5, 1}, "axes:is keepdims:i",
                  expand_qlinear_reduce_mean),
      expanded_op("com.microsoft.NhwcMaxPool", 1, {1, 1, 1},
                  "auto_pad:s ceil_mode:i dilations:is kernel_shape:is pads:is strides:is",
                  expand_nhwc_max_pool),
  };
  return ops;
}

}  // namespace hone::graph
