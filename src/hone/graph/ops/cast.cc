// From one element type to another.
#include "hone/graph/expand.h"
#include "hone/graph/ops/pointwise.h"
#include "hone/graph/ops/small_cast.h"
#include "hone/graph/ops/type_code.h"

namespace hone::graph {
namespace {

using ir::Expr;

// Returns how Cast's attributes say that a float of 8 bits is rounded; none if they say nothing
// that is known.
std::optional<SmallRounding> rounding_of(const Attributes& attributes) {
  using Power = SmallRounding::Power;
  const std::pair<const char*, Power> modes[] = {
      {"up", Power::kUp}, {"down", Power::kDown}, {"nearest", Power::kNearest}};
  const std::string given = attributes.text("round_mode", "up");
  for (const auto& [name, power] : modes) {
    if (given == name) return SmallRounding{attributes.integer("saturate", 1) != 0, power};
  }
  return std::nullopt;
}

Status infer_cast(InferContext& c) {
  const auto to = type_of_code(c.attributes().integer("to", 0));
  if (!to) {
    const int64_t code = c.attributes().integer("to", 0);
    constexpr int64_t kString = 8;
    return c.unsupported(
        "a cast to element type {}, expected one of numbers or booleans{}", type_code_text(code),
        code == kString ? ": leave the node out, and write texts after the model" : "");
  }
  if (!rounding_of(c.attributes()))
    return c.fail("round_mode '{}', expected up, down or nearest",
                  c.attributes().text("round_mode", "up"));
  return c.set(0, *to, c.shape(0));
}

// Weights are large: floats and what small types hold are converted here, all else as emit_cast()
// says.
Result<std::vector<Tensor>> fold_cast(const Graph& graph, const Node& node) {
  const Tensor& from = *graph.value(node.inputs[0]).constant;
  Tensor to(graph.value(node.outputs[0]).dtype, from.shape());
  if (from.dtype() == to.dtype()) return std::vector<Tensor>{from};
  const bool direct = is_float(from.dtype()) ? is_float(to.dtype())
                                             : is_small(from.dtype()) && is_float(to.dtype());
  if (!direct) return evaluate_node(graph, node);
  for (int64_t i = 0; i < from.size(); ++i) to.set(i, from.at(i));
  return std::vector<Tensor>{std::move(to)};
}

void emit_cast(EmitContext& c) {
  const DType from = c.input(0).dtype, to = c.result().dtype;
  emit_unary(c, "cast", [&](const Expr& x) {
    if (from == to) return x;
    const Expr value = is_small(from) ? from_small(from, x) : x;
    return is_small(to) ? to_small(to, value, *rounding_of(c.node().attributes))
                        : ir::cast(to, value);
  });
}

Status infer_bit_cast(InferContext& c) {
  HONE_RETURN_IF_ERROR(infer_cast(c));
  const DType to = *type_of_code(c.attributes().integer("to", 0));
  if (dtype_bytes(to) != dtype_bytes(c.dtype(0)) ||
      elements_per_byte(to) != elements_per_byte(c.dtype(0)))
    return c.fail("the bits of {} as {}", dtype_name(c.dtype(0)), dtype_name(to));
  return ok_status();
}

void emit_bit_cast(EmitContext& c) {
  emit_unary(c, "bit_cast", [&](const Expr& x) {
    return ir::bit_cast(stored_type(c.result().dtype), ir::cast(stored_type(c.input(0).dtype), x));
  });
}

Status expand_cast_like(ExpandContext& c) {
  const Attributes& given = c.attributes();
  c.result(0, c.add("Cast", {c.input(0)},
                    {{"to", static_cast<int64_t>(c.dtype(1))},
                     {"saturate", given.integer("saturate", 1)},
                     {"round_mode", given.text("round_mode", "up")}}));
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
