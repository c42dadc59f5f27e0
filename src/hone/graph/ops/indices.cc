#include "hone/graph/ops/indices.h"

namespace hone::graph {

using ir::Expr;

Status check_indices(const InferContext& c, size_t i) {
  if (c.dtype(i) != DType::kI64 && c.dtype(i) != DType::kI32)
    return c.fail("indices of type {}", dtype_name(c.dtype(i)));
  return ok_status();
}

Result<size_t> axis_attribute(const InferContext& c, int64_t otherwise) {
  const int64_t given = c.attributes().integer("axis", otherwise);
  const auto axis = normalize_axis(given, c.rank(0));
  if (!axis) return c.fail("axis {} of a value of shape {}", given, to_string(c.shape(0)));
  return static_cast<size_t>(*axis);
}

size_t axis_of(const EmitContext& c, int64_t otherwise) {
  return static_cast<size_t>(*normalize_axis(c.node().attributes.integer("axis", otherwise),
                                             static_cast<int64_t>(c.input(0).shape.size())));
}

Expr place_of(const Expr& given, int64_t extent) {
  const Expr index = ir::cast(DType::kI64, given);
  const Expr positive = ir::select(ir::less(index, ir::constant(0)), index + extent, index);
  return ir::min(ir::max(positive, ir::constant(0)), ir::constant(extent - 1));
}

std::vector<compute::Axis> axes_of(const Shape& shape, size_t begin, size_t end) {
  std::vector<compute::Axis> axes;
  for (size_t d = begin; d < end; ++d)
    axes.push_back(compute::make_axis(fmt::format("i{}", d), shape[d]));
  return axes;
}

void element_body(EmitContext& c, const StageTag& tag,
                  const std::function<Expr(const std::vector<Expr>& index)>& value) {
  const std::vector<compute::Axis> all = axes_of(c.result().shape, 0, c.result().shape.size());
  std::vector<compute::Axis> points;
  for (const int dim : order_of(c.result())) points.push_back(all[static_cast<size_t>(dim)]);
  std::vector<compute::Axis> inner;
  if (!points.empty()) {
    inner.push_back(points.back());
    points.pop_back();
  }
  const std::vector<Expr> index = compute::variables(all);
  c.body(tag, points, [&](const std::vector<Expr>&) {
    return std::vector{loops_over(inner, {c.store(0, index, value(index))})};
  });
}

ir::Stmt count_to(const char* name, const ir::Expr& count,
                  const std::function<std::vector<ir::Stmt>(const ir::Expr& i)>& body) {
  const ir::VarPtr i = ir::make_var(name);
  return ir::make_for(i, ir::constant(0), count, ir::ForKind::kSerial, body(ir::variable(i)));
}

ir::Stmt vectors_to(const char* name, const ir::Expr& count,
                    const std::function<std::vector<ir::Stmt>(const ir::Expr& i)>& body) {
  const ir::VarPtr i = ir::make_var(name);
  return ir::make_for(i, ir::constant(0), count, ir::ForKind::kVectorized, body(ir::variable(i)));
}

Expr end_of_run(EmitContext& c, size_t i, int64_t most) {
  const Expr all = ir::constant(most);
  return c.node().has_input(i) ? ir::min(c.read(i, "count", {ir::constant(0)}), all) : all;
}

ir::Stmt loops_over_run(EmitContext& c, const std::vector<compute::Axis>& axes, size_t first,
                        std::vector<ir::Stmt> body) {
  for (size_t d = axes.size(); d-- > 0;) {
    body = {ir::make_for(axes[d].var, ir::constant(0), end_of_run(c, first + d, axes[d].extent),
                         ir::ForKind::kSerial, std::move(body))};
  }
  return ir::make_block(std::move(body));
}

ir::Stmt with_locals(const std::vector<Local>& locals, std::vector<ir::Stmt> body) {
  std::erase(body, nullptr);
  for (const Local& local : locals) body = {ir::make_alloc(local.buffer, std::move(body))};
  return ir::make_block(std::move(body));
}

}  // namespace hone::graph
