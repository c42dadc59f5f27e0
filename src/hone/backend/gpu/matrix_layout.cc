#include "hone/backend/gpu/matrix_layout.h"

namespace hone::backend::gpu {
namespace {

using ir::Expr;
using ir::floordiv;
using ir::floormod;

// PTX calls these groupID and threadID_in_group.
Expr group(const Expr& lane) { return floordiv(lane, 4); }
Expr in_group(const Expr& lane) { return floormod(lane, 4); }

}  // namespace

Expr row_of(const Expr& own_row, const Expr& lane) { return own_row * kTileRows + group(lane); }
Expr column_of(const Expr& own_column, const Expr& lane) {
  return floordiv(own_column, kOwnColumns) * kTileColumns + in_group(lane) * kOwnColumns +
         floormod(own_column, kOwnColumns);
}

int64_t matrix_depth(DType type) { return type == DType::kF32 ? 8 : 16; }

MatrixPlace a_place(DType type, int number, const Expr& lane) {
  if (type == DType::kF32) return {group(lane) + number % 2 * 8, in_group(lane) + number / 2 * 4};
  return {group(lane) + number / 2 % 2 * 8, in_group(lane) * 2 + (number / 4 * 8 + number % 2)};
}

MatrixPlace b_place(DType type, int number, const Expr& lane) {
  if (type == DType::kF32) return {in_group(lane) + number * 4, group(lane)};
  return {in_group(lane) * 2 + (number / 2 * 8 + number % 2), group(lane)};
}

MatrixPlace d_place(int number, const Expr& lane) {
  return {row_of(ir::constant(number / 2), lane), column_of(ir::constant(number % 2), lane)};
}

OwnPlace a_of_fragment(DType type, int number) {
  if (type == DType::kF32) return {number % 2, number / 2};
  return {number / 2 % 2, number / 4 * 2 + number % 2};
}

MatrixPlace b_of_fragment(DType type, int number, const Expr& lane) {
  if (type == DType::kF32) return {in_group(lane) * 2 + number, group(lane)};
  return b_place(type, number, lane);
}

MatrixPlace address_place(bool by_column, const Expr& lane) {
  if (by_column)
    return {floormod(floordiv(lane, 8), 2) * 8, floordiv(lane, 16) * 8 + floormod(lane, 8)};
  return {floormod(lane, 16), floordiv(lane, 16) * 8};
}

}  // namespace hone::backend::gpu
