// schedule/matrix_product.h - a sum of products as one product of matrices: convolutions become
// implicit GEMM (Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning").
//
// A stage S[g, i.., j..] = sum over r.. of a(g, i.., r..) * b(g, j.., r..) becomes
//   left[g, rows, terms] = a,  right[g, terms, columns] = b
//   S'[g, rows, columns] = sum over terms of left * right
// The axes i.. are the digits of `rows`, j.. those of `columns`, r.. those of `terms`, outermost
// first; terms beyond the sum are zeros. Who read S reads the same elements of S'. Elements of 16
// bits that the sum widens are copied as they are.
#pragma once

#include <optional>

#include "hone/schedule/state.h"

namespace hone::schedule {

// The factors of what a stage sums up, or nothing if it is no sum of products in float32 that
// begins with zero.
struct ProductTerms {
  ir::Expr first, second;
};
[[nodiscard]] std::optional<ProductTerms> product_terms(const compute::Stage& stage);

[[nodiscard]] Status matrix_product(const MatrixProduct& step, State& state);

}  // namespace hone::schedule
