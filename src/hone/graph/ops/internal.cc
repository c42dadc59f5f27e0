// Operators that no file has: the copy of a value into another memory order or place, and the
// window on a value, which copies nothing; and what stands between a model at the sizes of a run
// and a part of it in its largest shape (graph/widen_nodes.h), until rules for sizes replace it.
#include "hone/graph/emit.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

Status infer_copy(InferContext& c) { return c.set(0, c.dtype(0), c.shape(0)); }

void emit_copy(EmitContext& c) {
  c.pointwise("copy", [&](const Point& point) { return c.operand(0, "data", point); });
}

bool like_operand(const Graph&, const Node& node, const std::vector<bool>& known) {
  return known[static_cast<size_t>(node.inputs[0])];
}

// ---- hone.Widen(x): `shape` is that of the result, with -1 for extents that are those of x;
// elements that x does not have are `value` ----

Status infer_widen(InferContext& c) {
  Shape shape = c.attributes().integers("shape");
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) shape[d] = c.shape(0)[d];
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

// ---- hone.Narrow(x, like): the first elements of x along `axis`, as many as dimension `of` of
// `like` has ----

Status infer_narrow(InferContext& c) {
  Shape shape = c.shape(0);
  shape[static_cast<size_t>(c.attributes().integer("axis", 0))] =
      c.shape(1)[static_cast<size_t>(c.attributes().integer("of", 0))];
  return c.set(0, c.dtype(0), std::move(shape));
}

// ---- hone.Extents(x): as many elements as dimension `of` of x has, each of them the extent of
// dimension `axis` in a run; it is no constant at any size ----

Status infer_extents(InferContext& c) {
  return c.set(0, DType::kI32, {c.shape(0)[static_cast<size_t>(c.attributes().integer("of", 0))]});
}

}  // namespace

std::span<const Op> internal_ops() {
  static const Op ops[] = {
      {.name = "hone.Copy", .infer = infer_copy, .emit = emit_copy, .non_negative = like_operand},
      {.name = "hone.Window",
       .kind = Kind::kView,
       .attributes = "starts:is",
       .non_negative = like_operand},
      {.name = "hone.Widen", .attributes = "shape:is value:f", .infer = infer_widen},
      {.name = "hone.Extents", .attributes = "axis:i of:i", .infer = infer_extents},
      {.name = "hone.Narrow",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = "axis:i of:i",
       .infer = infer_narrow},
  };
  return ops;
}

}  // namespace hone::graph
