// backend/gpu/matrix_layout.h - which lane of a warp holds which elements of the matrices of CUDA's
// matrix instructions (PTX ISA, "Matrix Fragments for mma.m16n8k8" and "... mma.m16n8k16"), and of
// fragments that the lanes of a warp have together.
//
// A fragment of rows and columns is spread as the instruction's result is: of each tile of 8 x 8
// elements, lane l has row l // 4 and the columns 2 * (l % 4) and the one after it. So the elements
// of a lane have numbers: that in row r and column c, own_row = r // 8 and own_column = c // 8 * 2
// + c % 2. A fragment of rows alone has an element of each row in four lanes.
#pragma once

#include "hone/ir/expr.h"

namespace hone::backend::gpu {

struct MatrixPlace {
  ir::Expr row, column;
};

// Rows and columns that a lane has of a tile of 8 x 8 elements.
inline constexpr int64_t kTileRows = 8, kTileColumns = 8;
inline constexpr int64_t kOwnColumns = 2;  // columns of a tile that one lane has

// Returns the row, and the column, of an element of a lane in a fragment.
[[nodiscard]] ir::Expr row_of(const ir::Expr& own_row, const ir::Expr& lane);
[[nodiscard]] ir::Expr column_of(const ir::Expr& own_column, const ir::Expr& lane);

// The instruction adds a product of 16 x k and k x 8 elements; k is 16 for elements of 16 bits and
// 8 for float32, which it rounds to tf32.
inline constexpr int64_t kMatrixRows = 16, kMatrixColumns = 8;
[[nodiscard]] int64_t matrix_depth(DType type);

// Returns the place of the number-th element that a lane gives of A (its row is one of the result)
// or B, or gets of the result. Two elements of 16 bits are one register.
[[nodiscard]] MatrixPlace a_place(DType type, int number, const ir::Expr& lane);
[[nodiscard]] MatrixPlace b_place(DType type, int number, const ir::Expr& lane);
[[nodiscard]] MatrixPlace d_place(int number, const ir::Expr& lane);

// Where the elements of A are taken from in a fragment: own_row and own_column of the number-th
// element. Those of float32 come in another order of the columns than a_place() has;
// b_of_fragment() is the place in B that belongs to it, as the order of what is summed up is free.
struct OwnPlace {
  int row, column;
};
[[nodiscard]] OwnPlace a_of_fragment(DType type, int number);
[[nodiscard]] MatrixPlace b_of_fragment(DType type, int number, const ir::Expr& lane);

// Returns the place, in A or B, of the first of 8 elements next to each other in memory whose
// address a lane gives to ldmatrix. `by_column` says that these are elements of a column. Lanes get
// what a_place() and b_place() say if ldmatrix transposes A that lies by columns, or B that lies by
// rows. A has 16 x 16 elements; of B, lanes from 16 on give the next 8 columns.
[[nodiscard]] MatrixPlace address_place(bool by_column, const ir::Expr& lane);

}  // namespace hone::backend::gpu
