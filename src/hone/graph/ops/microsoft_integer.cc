// Products of com.microsoft whose operands are bytes, and whose results may be floats: QGemm,
// MatMulIntegerToFloat, DynamicQuantizeMatMul (ONNX Runtime, ContribOperators.md).
#include "hone/graph/ops/integer_product.h"
#include "hone/graph/ops/microsoft_quantized.h"

namespace hone::graph {
namespace {

// A matrix [rows, columns] less its zero points, of which there is one or, if `by_column`, one for
// each column. It is turned if the attribute says so.
Result<ValueId> gemm_operand(ExpandContext& c, size_t i, const char* turned, bool by_column) {
  if (c.rank(i) != 2)
    return c.fail("operand {} of shape {}, expected rank 2", i, to_string(c.shape(i)));
  const bool turns = c.attributes().integer(turned, 0) != 0;
  HONE_ASSIGN_OR_RETURN(const ValueId x, centered(c, i, i + 2,
                                                  !by_column ? kNoAxis
                                                  : turns    ? 0
                                                             : 1));
  return turns ? c.transpose(x, {1, 0}) : x;
}

// Returns floats: the sums times both scales, plus a bias that has one element for each column.
Result<ValueId> scaled(ExpandContext& c, ValueId sum, ValueId factor, size_t bias) {
  ValueId y = c.binary("Mul", c.cast(sum, DType::kF32), factor);
  HONE_RETURN_IF_ERROR(c.status());
  if (c.shape_of(y) != c.shape_of(sum))
    return c.fail("scales of shape {} for a product of shape {}", to_string(c.shape_of(factor)),
                  to_string(c.shape_of(sum)));
  if (!c.has(bias)) return y;
  if (broadcast(c.shape_of(y), c.shape(bias)) != c.shape_of(y))
    return c.fail("bias of shape {} for a product of shape {}", to_string(c.shape(bias)),
                  to_string(c.shape_of(y)));
  return c.binary("Add", y, c.cast(c.input(bias), DType::kF32));
}

// alpha * (A' B' + C) with the scales of A and B: floats, or bytes if the result has a scale.
Status expand_qgemm(ExpandContext& c) {
  constexpr size_t kLeftScale = 1, kRight = 3, kRightScale = 4, kAdded = 6, kResultScale = 7,
                   kResultZero = 8;
  HONE_ASSIGN_OR_RETURN(const ValueId a, gemm_operand(c, 0, "transA", false));
  HONE_ASSIGN_OR_RETURN(const ValueId b, gemm_operand(c, kRight, "transB", true));
  ValueId sum = c.binary("MatMul", a, b);
  if (c.has(kAdded)) {
    HONE_RETURN_IF_ERROR(c.status());
    const Shape shape = c.shape_of(sum);
    if (c.dtype(kAdded) != DType::kI32 || broadcast(shape, c.shape(kAdded)) != shape)
      return c.fail("C is {} {}, expected i32 that broadcasts to {}", dtype_name(c.dtype(kAdded)),
                    to_string(c.shape(kAdded)), to_string(shape));
    sum = c.binary("Add", sum, c.input(kAdded));
  }
  const ProductScales at = {.left = kLeftScale,
                            .right = kRightScale,
                            .result = kResultScale,
                            .column = 1,
                            .alpha = c.attributes().number("alpha", 1)};
  if (c.has(kResultScale) != c.has(kResultZero))
    return c.fail("y_scale and y_zero_point must be given together");
  if (c.has(kResultScale)) return requantize(c, sum, at);
  HONE_ASSIGN_OR_RETURN(const ValueId left, scale_of(c, at.left, at.row, 2));
  HONE_ASSIGN_OR_RETURN(const ValueId right, scale_of(c, at.right, at.column, 2));
  const ValueId factor =
      c.binary("Mul", c.binary("Mul", left, right), static_cast<double>(at.alpha));
  HONE_ASSIGN_OR_RETURN(const ValueId y, scaled(c, sum, factor, kNoAxis));
  c.result(0, y);
  return ok_status();
}

// (A - a_zero) (B - b_zero) * a_scale * b_scale + bias, where A has one scale and one zero point.
Status expand_matmul_integer_to_float(ExpandContext& c) {
  constexpr size_t kLeftScale = 2, kRightScale = 3, kLeftZero = 4, kRightZero = 5, kBias = 6;
  if (c.dtype(kLeftScale) != c.dtype(kRightScale))
    return c.fail("scales of types {} and {}", dtype_name(c.dtype(kLeftScale)),
                  dtype_name(c.dtype(kRightScale)));
  HONE_ASSIGN_OR_RETURN(const ValueId a, centered(c, 0, kLeftZero, kNoAxis));
  HONE_ASSIGN_OR_RETURN(const ValueId b, centered(c, 1, kRightZero, column_axis(c, 1)));
  const ValueId sum = c.binary("MatMul", a, b);
  const auto rank = static_cast<size_t>(c.rank_of(sum));
  HONE_ASSIGN_OR_RETURN(const ValueId left, scale_of(c, kLeftScale, kNoAxis, rank));
  HONE_ASSIGN_OR_RETURN(const ValueId right,
                        scale_of(c, kRightScale, product_column_axis(c, 1, rank), rank));
  HONE_ASSIGN_OR_RETURN(const ValueId y, scaled(c, sum, c.binary("Mul", left, right), kBias));
  c.result(0, c.cast(y, c.dtype(kLeftScale)));
  return ok_status();
}

// Computes the same of an A that it quantises to bytes first.
Status expand_dynamic_quantize_matmul(ExpandContext& c) {
  constexpr size_t kRightScale = 2, kRightZero = 3, kBias = 4;
  const auto bytes = c.add_all("DynamicQuantizeLinear", {c.input(0)}, 3);
  const ValueId a = c.binary("Sub", c.cast(bytes[0], DType::kI32), c.cast(bytes[2], DType::kI32));
  HONE_ASSIGN_OR_RETURN(const ValueId b, centered(c, 1, kRightZero, column_axis(c, 1)));
  const ValueId sum = c.binary("MatMul", a, b);
  const auto rank = static_cast<size_t>(c.rank_of(sum));
  HONE_ASSIGN_OR_RETURN(const ValueId right,
                        scale_of(c, kRightScale, product_column_axis(c, 1, rank), rank));
  HONE_ASSIGN_OR_RETURN(const ValueId y, scaled(c, sum, c.binary("Mul", bytes[1], right), kBias));
  c.result(0, y);
  return ok_status();
}

}  // namespace

std::span<const Op> microsoft_integer_ops() {
  static const Op ops[] = {
      expanded_op("com.microsoft.QGemm", 1, {6, 9, 1}, "alpha:f transA:i transB:i", expand_qgemm),
      expanded_op("com.microsoft.MatMulIntegerToFloat", 1, {4, 7, 1}, "",
                  expand_matmul_integer_to_float),
      expanded_op("com.microsoft.DynamicQuantizeMatMul", 1, {3, 5, 1}, "",
                  expand_dynamic_quantize_matmul),
  };
  return ops;
}

}  // namespace hone::graph
