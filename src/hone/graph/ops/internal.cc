// Operators that no file has. Passes create the copy of a value into another memory order or place,
// and the window on a value, which copies nothing; the import creates loops that are repeated at
// run time, and the copies of what they keep, and what stands between a model at the sizes of a run
// and a part of it in its largest shape (graph/widen_nodes.h), until rules for sizes replace it.
#include "hone/graph/emit.h"
#include "hone/graph/loop_body.h"
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

Status infer_blank(InferContext& c) {
  return c.set(0, static_cast<DType>(c.attributes().integer("dtype", 0)),
               c.attributes().integers("shape"));
}

Status infer_loop(InferContext& c) {
  const LoopBody& loop = *c.node().loop;
  const auto output = [&](size_t i) -> const Value& {
    return loop.graph.value(loop.graph.outputs[i]);
  };
  for (size_t i = 0; i < loop.carried; ++i)
    HONE_RETURN_IF_ERROR(c.set(i, output(i).dtype, output(i).shape));
  for (size_t i = 0; i < loop.rows(); ++i) {
    const size_t at = loop.carried + i;
    HONE_RETURN_IF_ERROR(c.set(at, output(at).dtype, loop.stacked_shape(i)));
  }
  return c.set(loop.graph.outputs.size(), DType::kI64, {1});
}

// ---- hone.Widen(x): `shape` is that of the result, with -1 for extents that are those of x;
// elements that x does not have are `value`, or anything without that attribute ----

Status infer_widen(InferContext& c) {
  Shape shape = c.attributes().integers("shape");
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) shape[d] = c.shape(0)[d];
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

// ---- hone.Narrow(x, like): the first elements of x along `axis`, as many as dimension `of` of
// `like` has, times `factor`, plus `offset` ----

Status infer_narrow(InferContext& c) {
  const Attributes& a = c.attributes();
  Shape shape = c.shape(0);
  shape[static_cast<size_t>(a.integer("axis", 0))] =
      c.shape(1)[static_cast<size_t>(a.integer("of", 0))] * a.integer("factor", 1) +
      a.integer("offset", 0);
  return c.set(0, c.dtype(0), std::move(shape));
}

// ---- hone.Extent(x): one element, the extent of dimension `axis` of x in a run; it is no constant
// at any size ----

Status infer_extent(InferContext& c) { return c.set(0, DType::kI64, {1}); }

}  // namespace

std::span<const Op> internal_ops() {
  constexpr int kAny = 100'000;
  static const Op ops[] = {
      {.name = "hone.Copy", .infer = infer_copy, .emit = emit_copy, .non_negative = like_operand},
      // A copy that stays one: of a constant, too, and beside another one of the same value.
      {.name = "hone.Hold", .infer = infer_copy, .emit = emit_copy, .non_negative = like_operand},
      // Memory for what loops write: its elements are anything.
      {.name = "hone.Blank",
       .min_inputs = 0,
       .max_inputs = 0,
       .attributes = "shape:is dtype:i",
       .infer = infer_blank},
      {.name = "hone.Loop",
       .min_inputs = 0,
       .max_inputs = kAny,
       .max_outputs = kAny,
       .infer = infer_loop},
      {.name = "hone.Window",
       .kind = Kind::kView,
       .attributes = "starts:is",
       .non_negative = like_operand},
      {.name = "hone.Widen", .attributes = "shape:is value:f", .infer = infer_widen},
      {.name = "hone.Extent", .attributes = "axis:i", .infer = infer_extent},
      {.name = "hone.Narrow",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = "axis:i factor:i of:i offset:i",
       .infer = infer_narrow},
  };
  return ops;
}

}  // namespace hone::graph
