// Operators that only passes create: the copy of a value into another memory order or place, and
// the window on a value, which copies nothing.
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

}  // namespace

std::span<const Op> internal_ops() {
  static const Op ops[] = {
      {.name = "hone.Copy", .infer = infer_copy, .emit = emit_copy, .non_negative = like_operand},
      {.name = "hone.Window",
       .kind = Kind::kView,
       .attributes = "starts:is",
       .non_negative = like_operand},
  };
  return ops;
}

}  // namespace hone::graph
