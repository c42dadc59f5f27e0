// ir/gpu/matrix_box.h - boxes of elements as matrices: which dimensions are rows and columns.
#pragma once

#include <optional>

#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

struct MatrixBox {
  int row = -1, column = -1;  // dimensions of the buffer; -1: one row, one column
  int64_t rows = 1, columns = 1;
};
// Returns nothing if more than two extents are above 1. A box with one such extent is a row, or a
// column if it is transposed.
[[nodiscard]] std::optional<MatrixBox> matrix_of(const Box& box);

// Checks that the boxes of a matrix statement, and those of a copy, fit together.
[[nodiscard]] Status check_matrix(const StmtNode& s);
[[nodiscard]] Status check_box_copy(const StmtNode& s);

}  // namespace hone::ir
