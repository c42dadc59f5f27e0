// From one element type to another.
#include <cmath>

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

Result<std::vector<Tensor>> fold_cast(const Graph& graph, const Node& node) {
  const Tensor& from = *graph.value(node.inputs[0]).constant;
  Tensor to(graph.value(node.outputs[0]).dtype, from.shape());
  for (int64_t i = 0; i < from.size(); ++i) {
    // 64-bit integers do not pass through double.
    if (from.dtype() == DType::kI64 && to.dtype() == DType::kI64) {
      to.as<int64_t>()[static_cast<size_t>(i)] = from.as<int64_t>()[static_cast<size_t>(i)];
      continue;
    }
    const double value = from.at(i);
    to.set(i, to.dtype() == DType::kBool ? value != 0
              : is_float(to.dtype())     ? value
                                         : std::trunc(value));
  }
  return std::vector<Tensor>{std::move(to)};
}

void emit_cast(EmitContext& c) {
  emit_unary(c, "cast", [&](const Expr& x) { return ir::cast(c.result().dtype, x); });
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
