// graph/ops/integer_product.h - parts of products of quantised operands: operands less their zero
// points, scales that fit the product, and results as bytes again.
#pragma once

#include "hone/graph/expand.h"

namespace hone::graph {

// Stands for the dimension of an operand that has one zero point and one scale.
inline constexpr size_t kNoAxis = 99;

[[nodiscard]] Status check_bytes(const InferContext& c, size_t i);

// Returns operand `x`, of bytes, in 32 bits less the zero point `zero`, if there is one. A vector
// of zero points has one per index of dimension `axis`; without one (kNoAxis) there is one point.
[[nodiscard]] Result<ValueId> centered(ExpandContext& c, size_t x, size_t zero, size_t axis);

// These return the dimension of a matrix's rows and columns; a vector has none.
[[nodiscard]] size_t row_axis(const InferContext& c, size_t i);
[[nodiscard]] size_t column_axis(const InferContext& c, size_t i);

// These return the dimension of a product, of so many dimensions, along which the rows of operand a
// and the columns of operand b lie; a vector has none.
[[nodiscard]] size_t product_row_axis(const InferContext& c, size_t a, size_t b, size_t rank);
[[nodiscard]] size_t product_column_axis(const InferContext& c, size_t b, size_t rank);

// Returns a scale in f32 that broadcasts to a product of so many dimensions; a vector has one per
// index of dimension `axis`. Without one (kNoAxis) it is an error if it has more than one element.
[[nodiscard]] Result<ValueId> scale_of(ExpandContext& c, size_t i, size_t axis, size_t rank);

// This says where the scales of a product are among the operands, the result's zero point behind
// its scale, and which dimensions of the product vectors of them go along.
struct ProductScales {
  size_t left = 0, right = 0, result = 0;
  size_t row = kNoAxis, column = kNoAxis;
  float alpha = 1;  // the product is multiplied by this, too
};
// Sets the result to the sums times the factor of the scales, as the type of its zero point.
[[nodiscard]] Status requantize(ExpandContext& c, ValueId sum, const ProductScales& at);

}  // namespace hone::graph
