// Running sums and products, and triangles: CumSum, CumProd, Trilu; hone.CumSum and hone.CumProd,
// which are told how many elements of a row a run has.
#include <algorithm>

#include "hone/graph/integer_at.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/pointwise.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

Status infer_cumulative(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto axis, c.integers(1, "the axis"));
  if (axis.size() != 1 || !normalize_axis(axis[0], c.rank(0)))
    return c.fail("axis {} of a value of shape {}", to_string(axis), to_string(c.shape(0)));
  if (c.dtype(0) == DType::kBool) return c.fail("data of type bool");
  return c.set(0, c.dtype(0), c.shape(0));
}

// Rows are independent; along a row one element after the other. A run has the first ones, so where
// its number is known, a scan from the end begins with the last of them.
void emit_cumulative(EmitContext& c) {
  const bool product = c.node().type.ends_with("CumProd");
  const bool exclusive = c.node().attributes.integer("exclusive", 0) != 0;
  const bool reverse = c.node().attributes.integer("reverse", 0) != 0;
  const Shape& shape = c.input(0).shape;
  const auto axis = static_cast<size_t>(*normalize_axis(
      static_cast<int64_t>(c.input(1).constant->at(0)), static_cast<int64_t>(shape.size())));
  std::vector<compute::Axis> rows;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != axis) rows.push_back(compute::make_axis(fmt::format("i{}", d), shape[d]));
  }
  c.body(product ? "cum_prod" : "cum_sum", rows, [&](const std::vector<Expr>& row) {
    const DType type = compute_type(c.input(0).dtype);
    const ir::BufferPtr sum = ir::make_buffer("sum", type, {1}, ir::Scope::kStack);
    const std::vector<Expr> zero = {ir::constant(0)};
    const compute::Axis n = compute::make_axis("n", shape[axis]);
    const Expr step = ir::variable(n.var);
    std::vector<Expr> at = row;
    at.insert(at.begin() + static_cast<long>(axis),
              reverse ? ir::constant(shape[axis] - 1) - step : step);
    const Expr x = c.read(0, "data", at), old = ir::load(sum, zero);
    const Stmt update = ir::make_store(sum, zero, product ? old * x : old + x);
    const Stmt write = c.store(0, at, old);
    const Expr count = end_of_run(c, 2, shape[axis]);
    const Expr first =
        c.node().has_input(2) && reverse ? ir::constant(shape[axis]) - count : ir::constant(0);
    const Stmt loop =
        ir::make_for(n.var, first, count, ir::ForKind::kSerial,
                     exclusive ? std::vector{write, update} : std::vector{update, write});
    return std::vector{
        ir::make_alloc(sum, {ir::make_store(sum, zero, literal(type, product ? 1 : 0)), loop})};
  });
}

Status infer_trilu(InferContext& c) {
  if (c.rank(0) < 2) return c.fail("data of shape {}", to_string(c.shape(0)));
  if (c.has(1) && num_elements(c.shape(1)) != 1)
    return c.fail("k of shape {}", to_string(c.shape(1)));
  if (c.has(1) && c.dtype(1) != DType::kI64) return c.fail("k of type {}", dtype_name(c.dtype(1)));
  return c.set(0, c.dtype(0), c.shape(0));
}

void emit_trilu(EmitContext& c) {
  const bool upper = c.node().attributes.integer("upper", 1) != 0;
  c.pointwise("trilu", [&](const Point& point) {
    Expr k = ir::constant(0);
    if (c.node().has_input(1)) {
      const auto& known = c.input(1).constant;
      // A triangle is empty or whole from the corners of the matrix on.
      const int64_t columns = c.result().shape.back(), rows = *(c.result().shape.end() - 2);
      k = known ? ir::constant(std::clamp(integer_at(*known, 0), -rows, columns))
                : c.read(1, "k", std::vector<Expr>(c.input(1).shape.size(), ir::constant(0)));
    }
    const Expr row = point.index[point.index.size() - 2] + k, column = point.index.back();
    const Expr x = c.read(0, "data", point.index);
    return ir::select(upper ? ir::less_equal(row, column) : ir::less_equal(column, row), x,
                      literal(x->type, 0));
  });
}

Op cumulative(std::string_view name, int since, int max_inputs = 2) {
  return {.name = name,
          .since = since,
          .min_inputs = 2,
          .max_inputs = max_inputs,
          .attributes = "exclusive:i reverse:i",
          .infer = infer_cumulative,
          .fold = evaluate_node,
          .emit = emit_cumulative};
}

}  // namespace

std::span<const Op> scan_ops() {
  static const Op ops[] = {
      cumulative("CumSum", 11),
      cumulative("CumProd", 26),
      cumulative("hone.CumSum", 1, 3),
      cumulative("hone.CumProd", 1, 3),
      {.name = "Trilu",
       .since = 14,
       .max_inputs = 2,
       .kind = Kind::kReduction,
       .attributes = "upper:i",
       .infer = infer_trilu,
       .fold = evaluate_node,
       .emit = emit_trilu},
  };
  return ops;
}

}  // namespace hone::graph
