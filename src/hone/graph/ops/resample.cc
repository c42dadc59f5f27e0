// The internal operators of Resize: hone.Repeat and hone.Resample.
#include "hone/graph/evaluate.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;

// ---- hone.Repeat: each element of a dimension `repeats[d]` times in a row ----

Status infer_repeat(InferContext& c) {
  Shape shape = c.shape(0);
  const Shape repeats = c.attributes().integers("repeats");
  for (size_t d = 0; d < shape.size(); ++d) shape[d] *= repeats[d];
  return c.set(0, c.dtype(0), std::move(shape));
}

void emit_repeat(EmitContext& c) {
  const Shape repeats = c.node().attributes.integers("repeats");
  const auto role = [](size_t d) { return fmt::format("o{}", d); };
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] > 1) c.split_dim(static_cast<int>(d), role(d), repeats[d]);
  }
  c.pointwise("repeat", [&](const Point& point) {
    std::vector<Expr> from = point.index;
    for (size_t d = 0; d < repeats.size(); ++d) {
      if (repeats[d] > 1) from[d] = c.axis(point, role(d));
    }
    return c.read(0, "data", from);
  });
}

bool like_operand(const Graph&, const Node& node, const std::vector<bool>& known) {
  return known[static_cast<size_t>(node.inputs[0])];
}

// ---- hone.Resample: along an axis, result = sum over k of data[index[o, k]] * weight[o, k] ----
// Operands: data, index [o, k]; if they differ from 1, weight [o, k + 1], whose last column is
// added.

Status infer_resample(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, 0));
  Shape shape = c.shape(0);
  shape[axis] = c.shape(1)[0];
  return c.set(0, c.dtype(0), std::move(shape));
}

void emit_resample(EmitContext& c) {
  const size_t axis = axis_of(c, 0);
  const int64_t count = c.input(1).shape[1];
  const std::vector<compute::Axis> all = axes_of(c.result().shape, 0, c.result().shape.size());
  // In memory order: what lies inside the axis is a loop, or the axis itself if nothing does.
  std::vector<compute::Axis> points, inner;
  bool passed = false;
  for (const int dim : order_of(c.result())) {
    (passed ? inner : points).push_back(all[static_cast<size_t>(dim)]);
    passed = passed || static_cast<size_t>(dim) == axis;
  }
  if (inner.empty()) {
    inner = {points.back()};
    points.pop_back();
  }
  const std::vector<Expr> to = compute::variables(all);
  const auto term = [&](const Expr& k) {
    std::vector<Expr> from = to;
    from[axis] = ir::cast(DType::kI64, c.read(1, "index", {to[axis], k}));
    return c.read(0, "data", from);
  };
  const auto weight = [&](const Expr& k) { return c.read(2, "weight", {to[axis], k}); };
  c.body("resample", points, [&](const std::vector<Expr>&) {
    if (!c.node().has_input(2)) {
      return std::vector{loops_over(inner, {c.store(0, to, term(ir::constant(0)))})};
    }
    Expr sum = weight(ir::constant(count));
    if (count <= 4) {
      for (int64_t k = 0; k < count; ++k)
        sum = sum + term(ir::constant(k)) * weight(ir::constant(k));
      return std::vector{loops_over(inner, {c.store(0, to, sum)})};
    }
    const compute::Axis tap = compute::make_axis("k", count);
    const Expr k = ir::variable(tap.var);
    return std::vector{
        loops_over(inner, {c.store(0, to, sum)}),
        loops_over(
            {tap},
            {loops_over(inner, {c.store(0, to, c.read_result(0, to) + term(k) * weight(k))})})};
  });
}

}  // namespace

std::span<const Op> resample_ops() {
  static const Op ops[] = {
      {.name = "hone.Repeat",
       .layout = Layout::kFollow,
       .attributes = "repeats:is",
       .infer = infer_repeat,
       .fold = evaluate_node,
       .emit = emit_repeat,
       .non_negative = like_operand},
      {.name = "hone.Resample",
       .min_inputs = 2,
       .max_inputs = 3,
       .layout = Layout::kFollow,
       .attributes = "axis:i",
       .infer = infer_resample,
       .fold = evaluate_node,
       .emit = emit_resample},
  };
  return ops;
}

}  // namespace hone::graph
