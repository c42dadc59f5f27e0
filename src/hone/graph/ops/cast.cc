// From one element type to another.
#include "hone/graph/expand.h"
#include "hone/graph/ops/pointwise.h"

namespace hone::graph {
namespace {

using ir::Expr;

Status infer_cast(InferContext& c) {
  const auto to = dtype_from_onnx(static_cast<int>(c.attributes().integer("to", 0)));
  if (!to) return c.unsupported("a cast to element type {}", c.attributes().integer("to", 0));
  return c.set(0, *to, c.shape(0));
}

// Weights are large: floats are converted here, all else as emit_cast() says.
Result<std::vector<Tensor>> fold_cast(const Graph& graph, const Node& node) {
  const Tensor& from = *graph.value(node.inputs[0]).constant;
  Tensor to(graph.value(node.outputs[0]).dtype, from.shape());
  if (from.dtype() == to.dtype()) return std::vector<Tensor>{from};
  if (!is_float(from.dtype()) || !is_float(to.dtype())) return evaluate_node(graph, node);
  for (int64_t i = 0; i < from.size(); ++i) to.set(i, from.at(i));
  return std::vector<Tensor>{std::move(to)};
}

void emit_cast(EmitContext& c) {
  emit_unary(c, "cast", [&](const Expr& x) { return ir::cast(c.result().dtype, x); });
}

Status infer_bit_cast(InferContext& c) {
  HONE_RETURN_IF_ERROR(infer_cast(c));
  const DType to = *dtype_from_onnx(static_cast<int>(c.attributes().integer("to", 0)));
  if (dtype_bytes(to) != dtype_bytes(c.dtype(0)))
    return c.fail("the bits of {} as {}", dtype_name(c.dtype(0)), dtype_name(to));
  return ok_status();
}

void emit_bit_cast(EmitContext& c) {
  emit_unary(c, "bit_cast", [&](const Expr& x) {
    return ir::bit_cast(c.result().dtype, ir::cast(c.input(0).dtype, x));
  });
}

Status expand_cast_like(ExpandContext& c) {
  c.result(0, c.cast(c.input(0), c.dtype(1)));
  return ok_status();
}

}  // namespace

std::span<const Op> cast_ops() {
  static const Op ops[] = {
      {.name = "Cast",
       .kind = Kind::kElementwise,
       .layout = Layout::kFollow,
       .attributes = "to:i saturate:i round_mode:s",
       .infer = infer_cast,
       .fold = fold_cast,
       .emit = emit_cast,
       .non_negative = like_operand},
      {.name = "BitCast",
       .since = 26,
       .kind = Kind::kElementwise,
       .layout = Layout::kFollow,
       .attributes = "to:i",
       .infer = infer_bit_cast,
       .fold = evaluate_node,
       .emit = emit_bit_cast},
      {.name = "CastLike",
       .since = 15,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = "saturate:i round_mode:s",
       .expand = expand_cast_like},
  };
  return ops;
}

}  // namespace hone::graph
