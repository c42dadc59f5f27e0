// ReduceSum, ReduceMean, ReduceMax, ReduceMin.
#include <algorithm>

#include "hone/graph/emit.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;

// Which dimensions are reduced.
Result<std::vector<bool>> reduced(const InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto axes, c.integers_or_attribute(1, "axes"));
  const bool all = !axes || axes->empty();
  std::vector<bool> result(static_cast<size_t>(c.rank(0)),
                           all && c.attributes().integer("noop_with_empty_axes", 0) == 0);
  if (all) return result;
  for (const int64_t given : *axes) {
    const auto axis = normalize_axis(given, c.rank(0));
    if (!axis) return c.fail("axis {} of a value of shape {}", given, to_string(c.shape(0)));
    result[static_cast<size_t>(*axis)] = true;
  }
  return result;
}

Status infer_reduction(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto drop, reduced(c));
  const bool keep = c.attributes().integer("keepdims", 1) != 0;
  Shape shape;
  for (size_t d = 0; d < drop.size(); ++d) {
    if (!drop[d]) shape.push_back(c.shape(0)[d]);
    if (drop[d] && keep) shape.push_back(1);
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

void emit_reduction(EmitContext& c, Combine combine, const StageTag& tag) {
  const auto drop = reduced(InferContext(const_cast<Graph&>(c.graph()), c.node()));
  HONE_ASSERT(drop.ok(), "the shape rule has checked the axes");
  const bool keep = c.node().attributes.integer("keepdims", 1) != 0;
  const Shape& shape = c.input(0).shape;
  std::vector<compute::Axis> reduce;
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((*drop)[d]) reduce.push_back(compute::make_axis(fmt::format("r{}", d), shape[d]));
  }
  if (reduce.empty()) {
    c.pointwise(tag, [&](const Point& point) { return c.read(0, "data", point.index); });
    return;
  }
  c.reduce(combine, tag, std::move(reduce), [&](const Point& point, const std::vector<Expr>& r) {
    std::vector<Expr> index;
    size_t next = 0, at = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      index.push_back((*drop)[d] ? r[next++] : point.index[at]);
      if (!(*drop)[d] || keep) ++at;
    }
    return c.read(0, "data", index);
  });
}

void emit_sum(EmitContext& c) { emit_reduction(c, Combine::kSum, "reduce_sum"); }
void emit_max(EmitContext& c) { emit_reduction(c, Combine::kMax, "reduce_max"); }
void emit_min(EmitContext& c) { emit_reduction(c, Combine::kMin, "reduce_min"); }
void emit_mean(EmitContext& c) {
  emit_reduction(c, Combine::kSum, StageTag("reduce_sum", "reduce_mean"));
  const double count = static_cast<double>(num_elements(c.input(0).shape)) /
                       static_cast<double>(num_elements(c.result().shape));
  c.pointwise(StageTag("scale", ""), [&](const Point& point) {
    return c.last(point) * literal(compute_type(c.result().dtype), 1 / count);
  });
}

Status infer_mean(InferContext& c) {
  if (!is_float(c.dtype(0))) return c.unsupported("data of type {}", dtype_name(c.dtype(0)));
  return infer_reduction(c);
}

bool like_operand(const Graph&, const Node& node, const std::vector<bool>& known) {
  return known[static_cast<size_t>(node.inputs[0])];
}

}  // namespace

std::span<const Op> reduction_ops() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> list;
    const auto add = [&](std::string_view name, void (*emit)(EmitContext&),
                         int axes_as_operand_since) {
      Op op{.name = name,
            .kind = Kind::kReduction,
            .layout = Layout::kFollow,
            .infer = name == "ReduceMean" ? infer_mean : infer_reduction,
            .emit = emit,
            .non_negative = like_operand};
      op.until = axes_as_operand_since - 1;
      op.attributes = "axes:is keepdims:i";
      list.push_back(op);
      op.since = axes_as_operand_since;
      op.until = kMaxOpset;
      op.max_inputs = 2;
      op.attributes = "keepdims:i noop_with_empty_axes:i";
      list.push_back(op);
    };
    add("ReduceMean", emit_mean, 18);
    add("ReduceSum", emit_sum, 13);
    add("ReduceMax", emit_max, 18);
    add("ReduceMin", emit_min, 18);
    return list;
  }();
  return ops;
}

}  // namespace hone::graph
