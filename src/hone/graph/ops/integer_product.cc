// Products of quantized operands, summed in 32 bits: MatMulInteger, QLinearMatMul, ConvInteger,
// QLinearConv. Each is the product of the operands less their zero points.
#include "hone/graph/ops/integer_product.h"

#include "hone/graph/ops/microsoft.h"
#include "hone/graph/ops/quantize.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/window.h"

namespace hone::graph {

Status check_bytes(const InferContext& c, size_t i) {
  if (c.dtype(i) == DType::kI8 || c.dtype(i) == DType::kU8) return ok_status();
  return c.unsupported("operand {} of type {}, expected i8 or u8", i, dtype_name(c.dtype(i)));
}

Result<ValueId> centered(ExpandContext& c, size_t x, size_t zero, size_t axis) {
  HONE_RETURN_IF_ERROR(check_bytes(c, x));
  const ValueId wide = c.cast(c.input(x), DType::kI32);
  if (!c.has(zero)) return wide;
  const Shape& shape = c.shape(x);
  Shape point = c.shape(zero);
  if (num_elements(point) == 1) {
    point = {};
  } else if (axis < shape.size() && point == Shape{shape[axis]}) {
    point.assign(shape.size(), 1);
    point[axis] = shape[axis];
  } else if (axis == kNoAxis) {
    return c.fail("operand {}, a zero point, has shape {}, expected one element", zero,
                  to_string(point));
  } else if (point.size() == 1 || broadcast(point, shape) != shape) {
    return c.fail("zero points of shape {} for an operand of shape {}", to_string(point),
                  to_string(shape));
  }
  if (c.dtype(zero) != c.dtype(x))
    return c.fail("zero points of type {} for an operand of type {}", dtype_name(c.dtype(zero)),
                  dtype_name(c.dtype(x)));
  return c.binary("Sub", wide, c.cast(c.reshape(c.input(zero), point), DType::kI32));
}

size_t row_axis(const InferContext& c, size_t i) {
  return c.rank(i) > 1 ? static_cast<size_t>(c.rank(i) - 2) : kNoAxis;
}
size_t column_axis(const InferContext& c, size_t i) {
  return c.rank(i) > 1 ? static_cast<size_t>(c.rank(i) - 1) : kNoAxis;
}

size_t product_row_axis(const InferContext& c, size_t a, size_t b, size_t rank) {
  if (c.rank(a) < 2) return kNoAxis;
  return rank - (c.rank(b) > 1 ? 2 : 1);
}
size_t product_column_axis(const InferContext& c, size_t b, size_t rank) {
  return c.rank(b) > 1 ? rank - 1 : kNoAxis;
}

namespace {

// Returns operand i, scales or zero points, such that it broadcasts to a product of so many
// dimensions. Those of more dimensions have one element along the other operand's rows or columns.
Result<ValueId> along(ExpandContext& c, size_t i, size_t axis, size_t rank) {
  Shape shape = c.shape(i);
  if (num_elements(shape) == 1) return c.reshape(c.input(i), {});
  if (axis >= rank)
    return c.fail("operand {}, a scale or zero point, has shape {}, expected one element", i,
                  to_string(shape));
  if (shape.size() == 1) {
    const int64_t count = shape[0];
    shape.assign(rank, 1);
    shape[axis] = count;
    return c.reshape(c.input(i), shape);
  }
  const size_t other = axis + 1 == rank ? 2 : 1;  // counted from the last dimension
  if (shape.size() < 2 || shape.size() > rank || shape[shape.size() - other] != 1)
    return c.fail(
        "operand {}, scales or zero points, has shape {}, expected one element, or one "
        "for each index of dimension {} of a product of rank {}",
        i, to_string(shape), axis, rank);
  return c.input(i);
}

}  // namespace

Result<ValueId> scale_of(ExpandContext& c, size_t i, size_t axis, size_t rank) {
  if (!is_float(c.dtype(i))) return c.fail("a scale of type {}", dtype_name(c.dtype(i)));
  HONE_ASSIGN_OR_RETURN(const ValueId scale, along(c, i, axis, rank));
  return c.cast(scale, DType::kF32);
}

Status requantize(ExpandContext& c, ValueId sum, const ProductScales& at) {
  const auto rank = static_cast<size_t>(c.rank_of(sum));
  const size_t zero_point = at.result + 1;
  HONE_RETURN_IF_ERROR(check_bytes(c, zero_point));
  HONE_ASSIGN_OR_RETURN(const ValueId left, scale_of(c, at.left, at.row, rank));
  HONE_ASSIGN_OR_RETURN(const ValueId right, scale_of(c, at.right, at.column, rank));
  HONE_ASSIGN_OR_RETURN(const ValueId out, scale_of(c, at.result, at.row, rank));
  HONE_ASSIGN_OR_RETURN(const ValueId zero, along(c, zero_point, at.row, rank));
  ValueId factor = c.binary("Mul", left, right);
  if (at.alpha != 1) factor = c.binary("Mul", factor, static_cast<double>(at.alpha));
  factor = c.binary("Div", factor, out);
  const ValueId scaled = c.binary("Mul", c.cast(sum, DType::kF32), factor);
  const ValueId result = saturated(c, scaled, zero, c.dtype(zero_point));
  HONE_RETURN_IF_ERROR(c.status());
  if (c.shape_of(result) != c.shape_of(sum)) return c.fail("scales or zero points do not fit");
  c.result(0, result);
  return ok_status();
}

namespace {

Status expand_matmul_integer(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId a, centered(c, 0, 2, row_axis(c, 0)));
  HONE_ASSIGN_OR_RETURN(const ValueId b, centered(c, 1, 3, column_axis(c, 1)));
  c.result(0, c.binary("MatMul", a, b));
  return ok_status();
}

Status expand_qlinear_matmul(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId a, centered(c, 0, 2, row_axis(c, 0)));
  HONE_ASSIGN_OR_RETURN(const ValueId b, centered(c, 3, 5, column_axis(c, 3)));
  const ValueId sum = c.binary("MatMul", a, b);
  const auto rank = static_cast<size_t>(c.rank_of(sum));
  return requantize(c, sum,
                    {.left = 1,
                     .right = 4,
                     .result = 6,
                     .row = product_row_axis(c, 0, 3, rank),
                     .column = product_column_axis(c, 3, rank)});
}

Status expand_conv_integer(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId x, centered(c, 0, 2, kNoAxis));
  HONE_ASSIGN_OR_RETURN(const ValueId w, centered(c, 1, 3, 0));
  c.result(0, add_convolution(c, "hone.ConvInteger", x, w, kNoValue));
  return ok_status();
}

// ONNX's operator, and that of com.microsoft whose channels may stand last in data and result.
Status expand_qlinear_conv(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(ValueId x, centered(c, 0, 2, kNoAxis));
  HONE_ASSIGN_OR_RETURN(const ValueId w, centered(c, 3, 5, 0));
  const int64_t rank = c.rank(0);
  const bool last = c.attributes().integer("channels_last", 0) != 0;
  if (last && rank < 3) return c.fail("data of shape {}", to_string(c.shape(0)));
  if (last) x = channels_second(c, x, rank);
  ValueId sum = add_convolution(c, "hone.ConvInteger", x, w, c.input(8));
  if (last) sum = channels_last(c, sum, rank);
  return requantize(
      c, sum,
      {.left = 1, .right = 4, .result = 6, .column = last ? static_cast<size_t>(rank - 1) : 1});
}

}  // namespace

std::span<const Op> integer_product_ops() {
  static const Op ops[] = {
      {.name = "MatMulInteger",
       .since = 10,
       .min_inputs = 2,
       .max_inputs = 4,
       .expand = expand_matmul_integer},
      {.name = "QLinearMatMul",
       .since = 10,
       .min_inputs = 8,
       .max_inputs = 8,
       .expand = expand_qlinear_matmul},
      {.name = "ConvInteger",
       .since = 10,
       .min_inputs = 2,
       .max_inputs = 4,
       .attributes = kConvolutionAttributes,
       .expand = expand_conv_integer},
      {.name = "QLinearConv",
       .since = 10,
       .min_inputs = 8,
       .max_inputs = 9,
       .attributes = kConvolutionAttributes,
       .expand = expand_qlinear_conv},
      expanded_op("com.microsoft.QLinearConv", 1, {8, 9, 1},
                  "auto_pad:s channels_last:i dilations:is group:i kernel_shape:is pads:is "
                  "strides:is",
                  expand_qlinear_conv),
  };
  return ops;
}

}  // namespace hone::graph
