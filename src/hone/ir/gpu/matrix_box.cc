#include "hone/ir/gpu/matrix_box.h"

#include <algorithm>

namespace hone::ir {
namespace {

std::vector<int64_t> long_extents(const Box& box) {
  std::vector<int64_t> extents;
  std::copy_if(box.extents.begin(), box.extents.end(), std::back_inserter(extents),
               [](int64_t n) { return n > 1; });
  return extents;
}

Status fits_inside(const Box& box) {
  for (size_t d = 0; d < box.extents.size(); ++d) {
    const int64_t n = box.extents[d];
    if (n < 1 || n > box.buffer->shape[d])
      return invalid("a box of {} has the extent {} in dimension {} of {}", box.buffer->name, n, d,
                     box.buffer->shape[d]);
  }
  return ok_status();
}

}  // namespace

std::optional<MatrixBox> matrix_of(const Box& box) {
  MatrixBox made;
  std::vector<int> dims;
  for (size_t d = 0; d < box.extents.size(); ++d) {
    if (box.extents[d] > 1) dims.push_back(static_cast<int>(d));
  }
  if (dims.size() > 2) return std::nullopt;
  if (!dims.empty()) made.column = dims.back();
  if (dims.size() == 2) made.row = dims[0];
  if (box.transposed) std::swap(made.row, made.column);
  if (made.row >= 0) made.rows = box.extents[made.row];
  if (made.column >= 0) made.columns = box.extents[made.column];
  return made;
}

Status check_matrix(const StmtNode& s) {
  std::vector<MatrixBox> m;
  for (const Box& box : s.boxes) {
    HONE_RETURN_IF_ERROR(fits_inside(box));
    const std::optional<MatrixBox> matrix = matrix_of(box);
    if (!matrix) return invalid("a box of {} is no matrix", box.buffer->name);
    m.push_back(*matrix);
  }
  const bool fit =
      m[0].rows == m[1].rows && m[0].columns == m[2].columns && m[1].columns == m[2].rows;
  if (!fit)
    return invalid("a matrix statement of {}x{} += {}x{} * {}x{}", m[0].rows, m[0].columns,
                   m[1].rows, m[1].columns, m[2].rows, m[2].columns);
  const DType d = s.boxes[0].buffer->dtype, a = s.boxes[1].buffer->dtype;
  if (a != s.boxes[2].buffer->dtype || is_float(a) != is_float(d) || a == DType::kBool)
    return invalid("a matrix statement of {} += {} * {}", dtype_name(d), dtype_name(a),
                   dtype_name(s.boxes[2].buffer->dtype));
  return ok_status();
}

Status check_box_copy(const StmtNode& s) {
  const Box &to = s.boxes[0], &from = s.boxes[1];
  for (const Box& box : s.boxes) HONE_RETURN_IF_ERROR(fits_inside(box));
  const Scope a = to.buffer->scope, b = from.buffer->scope;
  const bool scopes =
      (a == Scope::kShared && b == Scope::kGlobal) || (a == Scope::kGlobal && b == Scope::kShared);
  if (!scopes || to.buffer->dtype != from.buffer->dtype || to.transposed || from.transposed)
    return invalid("a copy of {} to {} is not one of a type between global and shared memory",
                   from.buffer->name, to.buffer->name);
  return long_extents(to) == long_extents(from)
             ? ok_status()
             : invalid("the boxes of a copy of {} to {} have other extents", from.buffer->name,
                       to.buffer->name);
}

}  // namespace hone::ir
