// FlexAttention of ai.onnx.preview: attention whose scores and probabilities graphs of the model
// change.
#include <cmath>

#include "hone/graph/emit.h"
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/type_code.h"

namespace hone::graph {
namespace {

// x after the graph of an attribute, if there is one.
Result<ValueId> modified(ExpandContext& c, const char* name, ValueId x) {
  const auto* graph = c.attributes().find<Subgraph>(name);
  if (graph == nullptr) return x;
  if (graph->body->inputs.size() != 1 || graph->body->outputs.size() != 1)
    return c.fail("{} with {} inputs and {} results, expected one of each", name,
                  graph->body->inputs.size(), graph->body->outputs.size());
  const ValueId y = c.inline_body(*graph->body, {x})[0];
  HONE_RETURN_IF_ERROR(c.status());
  if (c.shape_of(y) != c.shape_of(x) || c.dtype_of(y) != c.dtype_of(x))
    return c.fail("{} makes {} {} of {} {}, expected the same", name, dtype_name(c.dtype_of(y)),
                  to_string(c.shape_of(y)), dtype_name(c.dtype_of(x)), to_string(c.shape_of(x)));
  return y;
}

Status check_operands(const ExpandContext& c) {
  bool fits = is_float(c.dtype(0));
  for (size_t i = 0; i < 3; ++i) {
    if (c.rank(i) != 4) return c.fail("operand {} of rank {}, expected 4", i, c.rank(i));
    fits = fits && c.dtype(i) == c.dtype(0) && c.shape(i)[0] == c.shape(0)[0];
    if (c.extents_of(c.input(i)) != kNoValue)
      return c.unsupported("operands whose shape depends on data");
  }
  const Shape &q = c.shape(0), &k = c.shape(1), &v = c.shape(2);
  fits = fits && q[3] == k[3] && k[1] == v[1] && k[2] == v[2] && k[1] > 0 && q[1] % k[1] == 0;
  if (fits) return ok_status();
  return c.fail(
      "queries {} {}, keys {} {} and values {} {}, expected floats of one type [n, hq, l, d], "
      "[n, h, m, d] and [n, h, m, e], where h divides hq",
      dtype_name(c.dtype(0)), to_string(q), dtype_name(c.dtype(1)), to_string(k),
      dtype_name(c.dtype(2)), to_string(v));
}

// Heads of keys or values, each as often as queries have it.
ValueId repeated(ExpandContext& c, ValueId x, int64_t heads) {
  const Shape shape = c.shape_of(x);
  if (shape[1] == heads) return x;
  const ValueId one = c.reshape(x, {shape[0], shape[1], 1, shape[2], shape[3]});
  const Shape wide = {shape[0], shape[1], heads / shape[1], shape[2], shape[3]};
  return c.reshape(c.add("Expand", {one, c.integers(wide)}), {shape[0], heads, shape[2], shape[3]});
}

Result<DType> precision(const ExpandContext& c) {
  if (!c.attributes().has("softmax_precision")) return compute_type(c.dtype(0));
  const int64_t code = c.attributes().integer("softmax_precision", 0);
  if (code < 0 || code > UINT8_MAX)
    return c.fail("softmax_precision is {}, expected a type of floats", code);
  const auto type = type_of_code(code);
  if (!type || !is_float(*type))
    return c.fail("softmax_precision is {}, expected a type of floats", type_code_text(code));
  return *type;
}

Status expand_flex_attention(ExpandContext& c) {
  HONE_RETURN_IF_ERROR(check_operands(c));
  HONE_ASSIGN_OR_RETURN(const DType type, precision(c));
  const int64_t heads = c.shape(0)[1];
  const double usual = 1 / std::sqrt(static_cast<double>(c.shape(0)[3]));
  const double scale =
      c.attributes().has("scale") ? static_cast<double>(c.attributes().number("scale", 1)) : usual;
  const ValueId keys = c.transpose(repeated(c, c.input(1), heads), {0, 1, 3, 2});
  const ValueId products = c.binary("MatMul", c.input(0), keys);
  const ValueId scores = c.cast(c.binary("Mul", products, scale), type);
  HONE_ASSIGN_OR_RETURN(const ValueId wanted, modified(c, "score_mod", scores));
  const ValueId shares = c.add("Softmax", {wanted}, {{"axis", int64_t{-1}}});
  HONE_ASSIGN_OR_RETURN(const ValueId probabilities, modified(c, "prob_mod", shares));
  const ValueId values = c.cast(repeated(c, c.input(2), heads), type);
  c.result(0, c.cast(c.binary("MatMul", probabilities, values), c.dtype(0)));
  return ok_status();
}

}  // namespace

std::span<const Op> flex_attention_ops() {
  constexpr int kAny = 100'000;  // captured values are operands, too
  static const Op ops[] = {expanded_op("ai.onnx.preview.FlexAttention", 1, {3, kAny, 1},
                                       "prob_mod:g scale:f score_mod:g softmax_precision:i",
                                       expand_flex_attention)};
  return ops;
}

}  // namespace hone::graph
