// Operators that make values of few numbers: Range, EyeLike, OneHot, AffineGrid.
#include <cmath>

#include "hone/graph/emit.h"
#include "hone/graph/evaluate.h"
#include "hone/graph/expand.h"
#include "hone/graph/integer_at.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/type_code.h"

namespace hone::graph {
namespace {

using ir::Expr;

// The elements are start, start + step and so on, below or above the limit. Integers of 64 bits are
// counted as such: a double does not have all of them.
Status set_integer_range(InferContext& c, const Tensor& from, const Tensor& to, const Tensor& by) {
  const int64_t start = from.as<int64_t>()[0], limit = to.as<int64_t>()[0],
                step = by.as<int64_t>()[0];
  int64_t distance = 0;
  if (step == 0 || __builtin_sub_overflow(limit, start, &distance))
    return c.fail("from {} to {} by {}", start, limit, step);
  // Rounded up; -1 is apart, as what it divides may be the least number.
  const bool any = distance != 0 && (distance > 0) == (step > 0);
  const int64_t last = !any         ? -1
                       : step == -1 ? -(distance + 1)
                                    : (distance - (step > 0 ? 1 : -1)) / step;
  if (last >= 1 << 28) return c.fail("from {} to {} by {}", start, limit, step);
  HONE_ASSIGN_OR_RETURN(Tensor list, c.new_constant(DType::kI64, {last + 1}));
  for (int64_t i = 0; i <= last; ++i) list.as<int64_t>()[static_cast<size_t>(i)] = start + i * step;
  return c.set_constant(0, std::move(list));
}

Status infer_range(InferContext& c) {
  const char* const names[] = {"the start", "the limit", "the step"};
  double numbers[3];
  const Tensor* given[3];
  for (size_t i = 0; i < 3; ++i) {
    HONE_ASSIGN_OR_RETURN(const Tensor* tensor, c.required(i, names[i]));
    if (tensor->size() != 1 || c.dtype(i) != c.dtype(0))
      return c.fail("{} is {} {}", names[i], dtype_name(c.dtype(i)), to_string(c.shape(i)));
    numbers[i] = tensor->at(0);
    given[i] = tensor;
  }
  if (c.dtype(0) == DType::kI64) return set_integer_range(c, *given[0], *given[1], *given[2]);
  const double count = std::ceil((numbers[1] - numbers[0]) / numbers[2]);
  if (!(count < 1 << 28)) return c.fail("from {} to {} by {}", numbers[0], numbers[1], numbers[2]);
  HONE_ASSIGN_OR_RETURN(Tensor list,
                        c.new_numbers(c.dtype(0), {static_cast<int64_t>(std::max(0.0, count))}, 1));
  for (int64_t i = 0; i < list.size(); ++i)
    list.set(i, numbers[0] + static_cast<double>(i) * numbers[2]);
  return c.set_constant(0, std::move(list));
}

Status infer_eye_like(InferContext& c) {
  if (c.rank(0) != 2) return c.fail("data of shape {}", to_string(c.shape(0)));
  DType dtype = c.dtype(0);
  if (c.attributes().has("dtype")) {
    const auto given = type_of_code(c.attributes().integer("dtype", 0));
    if (!given)
      return c.unsupported("element type {}", type_code_text(c.attributes().integer("dtype", 0)));
    dtype = *given;
  }
  const int64_t k = c.attributes().integer("k", 0);
  HONE_ASSIGN_OR_RETURN(Tensor eye, c.new_constant(dtype, c.shape(0)));
  const int64_t rows = c.shape(0)[0], columns = c.shape(0)[1];
  if (k > -rows && k < columns) {  // else the diagonal lies outside
    for (int64_t row = 0; row < rows; ++row) {
      if (row + k >= 0 && row + k < columns) eye.set(row * columns + row + k, 1);
    }
  }
  return c.set_constant(0, std::move(eye));
}

Result<size_t> one_hot_axis(const InferContext& c) {
  const int64_t given = c.attributes().integer("axis", -1);
  const auto axis = normalize_axis(given, c.rank(0) + 1);
  if (!axis) return c.fail("axis {} of a value of rank {}", given, c.rank(0) + 1);
  return static_cast<size_t>(*axis);
}

Status infer_one_hot(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const size_t axis, one_hot_axis(c));
  HONE_ASSIGN_OR_RETURN(const Tensor* depth, c.required(1, "the depth"));
  if (depth->size() != 1 || !(depth->at(0) >= 1 && depth->at(0) < 1 << 28))
    return c.fail("a depth of shape {}", to_string(depth->shape()));
  if (c.shape(2) != Shape{2}) return c.fail("values of shape {}", to_string(c.shape(2)));
  Shape shape = c.shape(0);
  shape.insert(shape.begin() + static_cast<long>(axis), integer_at(*depth, 0));
  return c.set(0, c.dtype(2), std::move(shape));
}

// Negative indices count from the end; those outside mark nothing.
void emit_one_hot(EmitContext& c) {
  const auto axis =
      static_cast<long>(*one_hot_axis(InferContext(const_cast<Graph&>(c.graph()), c.node())));
  const int64_t depth = c.result().shape[static_cast<size_t>(axis)];
  c.pointwise("one_hot", [&](const Point& point) {
    std::vector<Expr> at = point.index;
    const Expr place = at[static_cast<size_t>(axis)];
    at.erase(at.begin() + axis);
    const Expr index = ir::cast(DType::kI64, c.read(0, "indices", at));
    const Expr hit = ir::make(ir::Op::kOr, {ir::make(ir::Op::kEq, {index, place}),
                                            ir::make(ir::Op::kEq, {index + depth, place})});
    return ir::select(hit, c.read(2, "values", {ir::constant(1)}),
                      c.read(2, "values", {ir::constant(0)}));
  });
}

// grid[n, y, x] = theta[n] * (x, y, 1), with the coordinates of the result's pixels in -1 .. 1.
Status expand_affine_grid(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const Shape size, c.integers(1, "the size"));
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  if (spatial < 2 || spatial > 3 || c.shape(0) != Shape{size[0], spatial, spatial + 1})
    return c.fail("theta of shape {} for a size of {}", to_string(c.shape(0)), to_string(size));
  const bool corners = c.attributes().integer("align_corners", 0) != 0;
  int64_t pixels = 1;
  for (const int64_t extent : size) {
    if (extent < 1 || extent > 1 << 20) return c.fail("the size is {}", to_string(size));
  }
  for (int64_t d = 0; d < spatial; ++d) pixels *= size[static_cast<size_t>(d) + 2];
  HONE_ASSIGN_OR_RETURN(Tensor base,
                        c.new_numbers(compute_type(c.dtype(0)), {spatial + 1, pixels}, 1));
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    int64_t rest = pixel;
    for (int64_t k = 0; k < spatial; ++k) {  // x first
      const int64_t extent = size[size.size() - 1 - static_cast<size_t>(k)];
      const auto at = static_cast<double>(rest % extent);
      rest /= extent;
      const auto n = static_cast<double>(extent);
      const double place = !corners ? (2 * at + 1) / n - 1 : extent > 1 ? 2 * at / (n - 1) - 1 : -1;
      base.set(k * pixels + pixel, place);
    }
    base.set(spatial * pixels + pixel, 1);
  }
  const ValueId theta = c.cast(c.input(0), base.dtype());
  const ValueId points = c.add("MatMul", {theta, c.constant(std::move(base))});
  Shape shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(spatial);
  c.result(0, c.reshape(c.cast(c.transpose(points, {0, 2, 1}), c.dtype(0)), shape));
  return ok_status();
}

}  // namespace

std::span<const Op> generate_ops() {
  static const Op ops[] = {
      {.name = "Range",
       .since = 11,
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = "stash_type:i",
       .infer = infer_range},
      {.name = "EyeLike", .since = 9, .attributes = "dtype:i k:i", .infer = infer_eye_like},
      {.name = "OneHot",
       .since = 9,
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = "axis:i",
       .infer = infer_one_hot,
       .fold = evaluate_node,
       .emit = emit_one_hot},
      {.name = "AffineGrid",
       .since = 20,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = "align_corners:i",
       .expand = expand_affine_grid},
  };
  return ops;
}

}  // namespace hone::graph
