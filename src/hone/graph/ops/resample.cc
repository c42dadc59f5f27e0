// The internal operators of Resize: hone.Repeat and hone.Resample.
#include "hone/graph/evaluate.h"
#include "hone/graph/ops/axis_samples.h"
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

// The sum of many taps at one place along the axis, tap by tap; the loops inside it are vectors.
std::vector<ir::Stmt> add_taps(EmitContext& c, const AxisSamples& samples, size_t axis,
                               const std::vector<compute::Axis>& all,
                               const std::vector<compute::Axis>& inner) {
  const std::vector<Expr> to = compute::variables(all);
  std::vector<Expr> from = to;
  const compute::Axis tap = compute::make_axis("k", samples.taps());
  const Expr o = to[axis], k = ir::variable(tap.var), start = samples.added(o);
  const Local place("place", DType::kI64), factor("factor", start->type), sum("sum", start->type);
  from[axis] = place.get();
  const Expr term = c.read(0, "data", from) * factor.get();
  const bool alone = inner.empty();
  const ir::Stmt begin = alone ? sum.set(start) : vector_loops(inner, {c.store(0, to, start)});
  const ir::Stmt add = alone ? sum.set(sum.get() + term)
                             : vector_loops(inner, {c.store(0, to, c.read_result(0, to) + term)});
  return {with_locals(
      {place, factor, sum},
      {begin,
       loops_over({tap}, {place.set(samples.place(o, k)), factor.set(samples.weight(o, k)), add}),
       alone ? c.store(0, to, sum.get()) : nullptr})};
}

void emit_resample(EmitContext& c) {
  const size_t axis = axis_of(c, 0);
  const AxisSamples samples(c, 1, c.input(0).shape[axis]);
  const std::vector<compute::Axis> all = axes_of(c.result().shape, 0, c.result().shape.size());
  // In memory order: what lies inside the axis are loops in the body. So is the axis itself where
  // nothing does and few taps are written out.
  std::vector<compute::Axis> points, inner;
  bool passed = false;
  for (const int dim : order_of(c.result())) {
    const auto d = static_cast<size_t>(dim);
    if (d != axis) (passed && all[d].extent > 1 ? inner : points).push_back(all[d]);
    passed = passed || d == axis;
  }
  const bool few = samples.taps() <= AxisSamples::kFewTaps;
  if (!few || !inner.empty()) points.push_back(all[axis]);
  const auto at = [&](const Expr& o) {
    std::vector<Expr> to = compute::variables(all);
    to[axis] = o;
    return to;
  };
  const auto element = [&](const Expr& place) { return c.read(0, "data", at(place)); };
  c.body("resample", points, [&](const std::vector<Expr>&) -> std::vector<ir::Stmt> {
    if (!few) return add_taps(c, samples, axis, all, inner);
    const auto store = [&](const Expr& o, const Expr& value) { return c.store(0, at(o), value); };
    if (inner.empty())
      return samples.across(
          [](std::vector<ir::Stmt> row) { return ir::make_block(std::move(row)); }, element, store);
    const Expr o = ir::variable(all[axis].var);
    return {samples.at(o, nullptr, [&](const AxisSamples::Sum& sum) {
      return std::vector{vector_loops(inner, {store(o, sum(element))})};
    })};
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
