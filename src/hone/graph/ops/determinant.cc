// Det: the determinants of a batch of square matrices.
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"
#include "hone/tensor/fill.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

Status infer_det(InferContext& c) {
  const Shape& shape = c.shape(0);
  if (!is_float(c.dtype(0))) return c.fail("data of type {}", dtype_name(c.dtype(0)));
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2])
    return c.fail("data of shape {}, expected square matrices", to_string(shape));
  Shape batch(shape.begin(), shape.end() - 2);
  if (shape.back() == 0 && num_elements(batch) > 0) {
    HONE_ASSIGN_OR_RETURN(Tensor ones, c.new_constant(c.dtype(0), batch));
    Tensor one(ones.dtype(), {});
    one.set(0, 1);
    fill_with(ones, one);
    return c.set_constant(0, std::move(ones));
  }
  return c.set(0, c.dtype(0), std::move(batch));
}

// Gaussian elimination with the largest pivot of each column, on a copy; the determinant is the
// product of the pivots, its sign that of the row exchanges.
void emit_det(EmitContext& c) {
  const Shape& batch = c.result().shape;
  const int64_t n = c.input(0).shape.back();
  c.body("det", axes_of(batch, 0, batch.size()), [&](const std::vector<Expr>& point) {
    const DType type = compute_type(c.result().dtype);
    const ir::BufferPtr matrix = ir::make_buffer("matrix", type, {n, n}, ir::Scope::kThread);
    const Local det("det", type), factor("factor", type), pivot("pivot", DType::kI64);
    const auto at = [&](const Expr& i, const Expr& j) { return ir::load(matrix, {i, j}); };
    const auto set = [&](const Expr& i, const Expr& j, const Expr& value) {
      return ir::make_store(matrix, {i, j}, value);
    };
    const auto magnitude = [&](const Expr& i, const Expr& j) {
      return ir::make(ir::Op::kAbs, {at(i, j)});
    };
    const auto loop = [&](const char* name, const auto& body) {
      const compute::Axis axis = compute::make_axis(name, n);
      return loops_over({axis}, body(ir::variable(axis.var)));
    };
    const Stmt copy = loop("r", [&](const Expr& i) {
      return std::vector{loop("s", [&](const Expr& j) {
        std::vector<Expr> from = point;
        from.insert(from.end(), {i, j});
        return std::vector{set(i, j, c.read(0, "data", from))};
      })};
    });
    const Stmt eliminate = loop("k", [&](const Expr& k) {
      const Stmt find = loop("i", [&](const Expr& i) {
        const Expr larger = ir::less(magnitude(pivot.get(), k), magnitude(i, k));
        return std::vector{ir::make_if(ir::logical_and(ir::less(k, i), larger), {pivot.set(i)})};
      });
      const Stmt exchange = loop("x", [&](const Expr& j) {
        return std::vector{factor.set(at(k, j)), set(k, j, at(pivot.get(), j)),
                           set(pivot.get(), j, factor.get())};
      });
      const Stmt rows = loop("u", [&](const Expr& i) {
        const Stmt subtract = loop("v", [&](const Expr& j) {
          return std::vector{set(i, j, at(i, j) - factor.get() * at(k, j))};
        });
        return std::vector{
            ir::make_if(ir::less(k, i), {factor.set(at(i, k) / at(k, k)), subtract})};
      });
      const Expr none = literal(type, 0);
      return std::vector{
          pivot.set(k), find,
          ir::make_if(ir::less(k, pivot.get()), {exchange, det.set(none - det.get())}),
          det.set(det.get() * at(k, k)), ir::make_if(ir::less(none, magnitude(k, k)), {rows})};
    });
    return std::vector{ir::make_alloc(
        matrix, {with_locals({det, factor, pivot}, {copy, det.set(literal(type, 1)), eliminate,
                                                    c.store(0, point, det.get())})})};
  });
}

}  // namespace

std::span<const Op> determinant_ops() {
  static const Op ops[] = {{.name = "Det", .since = 11, .infer = infer_det, .emit = emit_det}};
  return ops;
}

}  // namespace hone::graph
