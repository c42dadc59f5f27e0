// Operators that write at indices that are data: Scatter, ScatterElements, ScatterND,
// TensorScatter. Where indices repeat, the updates are applied in order. hone.ScatterElements and
// hone.ScatterND are told how many indices a run has: operand 3 + d for dimension d of them.
#include "hone/graph/evaluate.h"
#include "hone/graph/expand.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

Status check_updates(const InferContext& c, const Shape& expected) {
  HONE_RETURN_IF_ERROR(check_indices(c, 1));
  const std::string reduction = c.attributes().text("reduction", "none");
  const bool known = reduction == "none" || reduction == "add" || reduction == "mul" ||
                     reduction == "max" || reduction == "min";
  if (!known) return c.unsupported("reduction '{}'", reduction);
  if (c.shape(2) != expected || c.dtype(2) != c.dtype(0)) {
    return c.fail("updates {} {}, expected {} {}", dtype_name(c.dtype(2)), to_string(c.shape(2)),
                  dtype_name(c.dtype(0)), to_string(expected));
  }
  return ok_status();
}

Status infer_scatter_elements(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, 0));
  HONE_RETURN_IF_ERROR(check_updates(c, c.shape(1)));
  bool fits = c.rank(1) == c.rank(0);
  for (size_t d = 0; fits && d < c.shape(0).size(); ++d)
    fits = d == axis || c.shape(1)[d] <= c.shape(0)[d];
  if (!fits)
    return c.fail("indices of shape {} for data of shape {}", to_string(c.shape(1)),
                  to_string(c.shape(0)));
  return c.set(0, c.dtype(0), c.shape(0));
}

// If there are no updates, the result is the data itself.
Status expand_without_updates(ExpandContext& c) {
  if (num_elements(c.shape(1)) > 0) {
    c.decline();
  } else {
    c.result(0, c.input(0));
  }
  return ok_status();
}

// Returns the statement that updates the element `at` of the result.
Stmt update(EmitContext& c, const std::vector<Expr>& at, const Expr& value) {
  const std::string reduction = c.node().attributes.text("reduction", "none");
  if (reduction == "none") return c.store(0, at, value);
  const Expr old = c.read_result(0, at);
  if (old->type == DType::kBool) {  // sums and maxima of truth values: or; products and minima: and
    const bool joins = reduction == "add" || reduction == "max";
    return c.store(0, at, ir::make(joins ? ir::Op::kOr : ir::Op::kAnd, {old, value}));
  }
  const Expr joined = reduction == "add"   ? old + value
                      : reduction == "mul" ? old * value
                      : reduction == "max" ? ir::max(old, value)
                                           : ir::min(old, value);
  return c.store(0, at, joined);
}

constexpr size_t kCounts = 3;  // the first operand that is a number of indices

std::vector<Expr> with(std::vector<Expr> index, size_t at, const Expr& value) {
  index.insert(index.begin() + static_cast<long>(at), value);
  return index;
}

// A row along the axis: copied, then updated.
void emit_scatter_elements(EmitContext& c) {
  const size_t axis = axis_of(c, 0);
  const Shape& data = c.input(0).shape;
  const Shape& indices = c.input(1).shape;
  std::vector<compute::Axis> rows = axes_of(data, 0, data.size());
  const compute::Axis along = rows[axis];
  const compute::Axis updates = compute::make_axis("u", indices[axis]);
  rows.erase(rows.begin() + static_cast<long>(axis));
  c.body("scatter_elements", rows, [&](const std::vector<Expr>& row) {
    const std::vector<Expr> old = with(row, axis, ir::variable(along.var));
    const std::vector<Expr> from = with(row, axis, ir::variable(updates.var));
    const Expr place = place_of(c.read(1, "indices", from), data[axis]);
    Stmt apply = loops_over_run(c, {updates}, kCounts + axis,
                                {update(c, with(row, axis, place), c.read(2, "updates", from))});
    for (size_t d = 0, r = 0; d < data.size(); ++d) {
      if (d == axis) continue;
      if (indices[d] < data[d] || c.node().has_input(kCounts + d))
        apply = ir::make_if(ir::less(row[r], end_of_run(c, kCounts + d, indices[d])), {apply});
      ++r;
    }
    return std::vector{loops_over({along}, {c.store(0, old, c.read(0, "data", old))}), apply};
  });
}

Status infer_scatter_nd(InferContext& c) {
  const Shape& data = c.shape(0);
  const Shape& indices = c.shape(1);
  if (indices.empty() || indices.back() < 1 || indices.back() > c.rank(0)) {
    return c.fail("indices of shape {} for data of shape {}", to_string(indices), to_string(data));
  }
  Shape expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + indices.back(), data.end());
  HONE_RETURN_IF_ERROR(check_updates(c, expected));
  return c.set(0, c.dtype(0), data);
}

// result = data; result[index..., inner...] = updates[u..., inner...]. Each point of the first
// dimension is a task of its own that looks for the updates that hit it, unless that search would
// cost more than the copy.
void emit_scatter_nd(EmitContext& c) {
  const Shape& data = c.input(0).shape;
  const Shape& indices = c.input(1).shape;
  const auto count = static_cast<size_t>(indices.back());
  const size_t rows = indices.size() - 1;
  const std::vector<compute::Axis> all = axes_of(data, 0, data.size());
  const std::vector<compute::Axis> inner = axes_of(data, count, data.size());
  std::vector<compute::Axis> updates;
  int64_t searched = data[0];
  for (size_t d = 0; d < rows; ++d) {
    updates.push_back(compute::make_axis(fmt::format("u{}", d), indices[d]));
    searched *= indices[d];
  }
  const bool parallel = searched <= 2 * num_elements(data) + num_elements(c.input(2).shape);
  const std::vector<compute::Axis> points(all.begin(), all.begin() + (parallel ? 1 : 0));
  const std::vector<compute::Axis> copied(all.begin() + (parallel ? 1 : 0), all.end());
  c.body("scatter_nd", points, [&](const std::vector<Expr>& point) {
    const std::vector<Expr> old = compute::variables(all);
    std::vector<Expr> to, from = compute::variables(updates);
    for (size_t k = 0; k < count; ++k) {
      std::vector<Expr> at = compute::variables(updates);
      at.push_back(ir::constant(static_cast<int64_t>(k)));
      to.push_back(place_of(c.read(1, "indices", at), data[k]));
    }
    Expr hit;
    if (parallel) {
      hit = ir::make(ir::Op::kEq, {to[0], point[0]});
      to[0] = point[0];
    }
    for (const Expr& i : compute::variables(inner)) {
      to.push_back(i);
      from.push_back(i);
    }
    Stmt apply = loops_over(inner, {update(c, to, c.read(2, "updates", from))});
    if (hit) apply = ir::make_if(hit, {apply});
    return std::vector{loops_over(copied, {c.store(0, old, c.read(0, "data", old))}),
                       loops_over_run(c, updates, kCounts, {apply})};
  });
}

Status infer_tensor_scatter(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, -2));
  const std::string mode = c.attributes().text("mode", "linear");
  if (mode != "linear" && mode != "circular") return c.fail("mode '{}'", mode);
  Shape expected = c.shape(1);
  const bool fits = axis > 0 && c.rank(1) == c.rank(0) && expected[axis] <= c.shape(0)[axis];
  if (fits) expected[axis] = c.shape(0)[axis];
  if (!fits || expected != c.shape(0) || c.dtype(1) != c.dtype(0)) {
    return c.fail("updates {} {} along axis {} of {} {}", dtype_name(c.dtype(1)),
                  to_string(c.shape(1)), axis, dtype_name(c.dtype(0)), to_string(c.shape(0)));
  }
  if (c.has(2)) {
    HONE_RETURN_IF_ERROR(check_indices(c, 2));
    if (c.shape(2) != Shape{c.shape(0)[0]})
      return c.fail("indices of shape {} for data of shape {}", to_string(c.shape(2)),
                    to_string(c.shape(0)));
  }
  return c.set(0, c.dtype(0), c.shape(0));
}

// A window of the axis comes from the update; where it starts is data, per batch element.
void emit_tensor_scatter(EmitContext& c) {
  const size_t axis = axis_of(c, -2);
  const int64_t extent = c.input(0).shape[axis];
  const int64_t window = c.input(1).shape[axis];
  const bool circular = c.node().attributes.text("mode", "linear") == "circular";
  element_body(c, "tensor_scatter", [&](const std::vector<Expr>& index) {
    const Expr start = c.node().has_input(2)
                           ? ir::cast(DType::kI64, c.read(2, "indices", {index[0]}))
                           : ir::constant(0);
    Expr place = index[axis] - start;
    if (circular) place = ir::floormod(place, extent);
    const Expr inside = ir::logical_and(ir::less_equal(ir::constant(0), place),
                                        ir::less(place, ir::constant(window)));
    std::vector<Expr> from = index;
    from[axis] = ir::min(ir::max(place, ir::constant(0)), ir::constant(window - 1));
    return ir::select(inside, c.read(1, "update", from), c.read(0, "data", index));
  });
}

Op scatter(std::string_view name, int since, int until, std::string_view attributes,
           Status (*infer)(InferContext&), void (*emit)(EmitContext&)) {
  return {.name = name,
          .since = since,
          .until = until,
          .min_inputs = 3,
          .max_inputs = 3,
          .attributes = attributes,
          .infer = infer,
          .expand = expand_without_updates,
          .fold = evaluate_node,
          .emit = emit};
}

// Returns the same operator, which takes numbers of indices as further operands.
Op counted(Op op, std::string_view name) {
  op.name = name;
  op.since = 1;
  op.max_inputs = kMostOperands;
  return op;
}

}  // namespace

std::span<const Op> scatter_ops() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> list = {
        scatter("Scatter", 9, 10, "axis:i", infer_scatter_elements, emit_scatter_elements),
        scatter("ScatterElements", 11, kMaxOpset, "axis:i reduction:s", infer_scatter_elements,
                emit_scatter_elements),
        scatter("ScatterND", 11, kMaxOpset, "reduction:s", infer_scatter_nd, emit_scatter_nd),
        scatter("TensorScatter", 24, kMaxOpset, "axis:i mode:s", infer_tensor_scatter,
                emit_tensor_scatter),
    };
    list[3].min_inputs = 2;
    list.push_back(counted(list[1], "hone.ScatterElements"));
    list.push_back(counted(list[2], "hone.ScatterND"));
    return list;
  }();
  return ops;
}

}  // namespace hone::graph
