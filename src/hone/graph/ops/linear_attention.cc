// Sequence operators with a state: LinearAttention, a scan over time that runs independently for
// each column of the state, and CausalConvWithState.
#include <cmath>

#include "hone/graph/expand.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;

struct Sizes {
  int64_t batch, time, heads, groups, keys, values;
};

Sizes sizes_of(const Attributes& attributes, const Shape& query, const Shape& value) {
  const int64_t heads = attributes.integer("q_num_heads", 0);
  const int64_t groups = attributes.integer("kv_num_heads", 0);
  return {query[0], query[1], heads, groups, query[2] / heads, value[2] / groups};
}

Status check_sizes(const InferContext& c) {
  const int64_t heads = c.attributes().integer("q_num_heads", 0);
  const int64_t groups = c.attributes().integer("kv_num_heads", 0);
  if (groups < 1 || heads < groups || heads % groups != 0)
    return c.fail("{} heads in {} groups", heads, groups);
  const Shape &q = c.shape(0), &k = c.shape(1), &v = c.shape(2);
  const bool fits = q.size() == 3 && k.size() == 3 && v.size() == 3 && k[0] == q[0] &&
                    v[0] == q[0] && k[1] == q[1] && v[1] == q[1] && q[2] % heads == 0 &&
                    k[2] == q[2] / heads * groups && v[2] % groups == 0;
  if (!fits || !is_float(c.dtype(0)) || c.dtype(1) != c.dtype(0) || c.dtype(2) != c.dtype(0)) {
    return c.fail("operands of shapes {}, {} and {}", to_string(q), to_string(k), to_string(v));
  }
  const Sizes s = sizes_of(c.attributes(), q, v);
  if (c.has(3) && c.shape(3) != Shape{s.batch, s.groups, s.keys, s.values})
    return c.fail("past_state of shape {}", to_string(c.shape(3)));
  const auto by_time = [&](size_t i, int64_t one, int64_t other) {
    const Shape& x = c.shape(i);
    return x == Shape{s.batch, s.time, one} || x == Shape{s.batch, s.time, other};
  };
  if (c.has(4) && !by_time(4, s.groups, s.groups * s.keys))
    return c.fail("decay of shape {}", to_string(c.shape(4)));
  if (c.has(5) && !by_time(5, s.groups, 1))
    return c.fail("beta of shape {}", to_string(c.shape(5)));
  return ok_status();
}

// With the factors of the decay as operand 4: the scan does not compute exponentials again for
// each column.
Status expand_linear_attention(ExpandContext& c) {
  HONE_RETURN_IF_ERROR(check_sizes(c));
  const std::string rule = c.attributes().text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") return c.fail("update_rule is '{}'", rule);
  if (gated != c.has(4) || delta != c.has(5))
    return c.fail("update_rule '{}' {} decay and {} beta", rule, c.has(4) ? "with" : "without",
                  c.has(5) ? "with" : "without");
  const Sizes s = sizes_of(c.attributes(), c.shape(0), c.shape(2));
  float scale = c.attributes().number("scale", 0);
  if (scale == 0) scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.keys)));
  const ValueId factors = gated ? c.add("Exp", {c.cast(c.input(4), DType::kF32)}) : kNoValue;
  const auto results = c.add_all(
      "hone.LinearAttention", {c.input(0), c.input(1), c.input(2), c.input(3), factors, c.input(5)},
      2, {{"q_num_heads", s.heads}, {"kv_num_heads", s.groups}, {"scale", scale}});
  c.result(0, results[0]);
  c.result(1, results[1]);
  return ok_status();
}

Status infer_scan(InferContext& c) {
  HONE_RETURN_IF_ERROR(check_sizes(c));
  const Sizes s = sizes_of(c.attributes(), c.shape(0), c.shape(2));
  HONE_RETURN_IF_ERROR(c.set(0, c.dtype(0), {s.batch, s.time, s.heads * s.values}));
  return c.set(1, c.dtype(c.has(3) ? 3 : 0), {s.batch, s.groups, s.keys, s.values});
}

void emit_scan(EmitContext& c) {
  const Sizes s = sizes_of(c.node().attributes, c.input(0).shape, c.input(2).shape);
  const double scale = c.node().attributes.number("scale", 1);
  const DType type = compute_type(c.input(0).dtype);
  const bool past = c.node().has_input(3), gated = c.node().has_input(4),
             delta = c.node().has_input(5);
  const auto as_type = [&](const Expr& e) { return e->type == type ? e : ir::cast(type, e); };
  const std::vector<compute::Axis> points = {compute::make_axis("b", s.batch),
                                             compute::make_axis("g", s.groups),
                                             compute::make_axis("v", s.values)};
  const ir::BufferPtr state = ir::make_buffer("state", type, {s.keys}, ir::Scope::kStack);
  c.body("linear_attention", points, [&](const std::vector<Expr>& at) {
    const Expr &batch = at[0], &group = at[1], &column = at[2];
    // A loop over the keys, with the element of the state for each.
    const auto for_keys = [&](const std::function<ir::Stmt(const Expr&)>& make) {
      const compute::Axis axis = compute::make_axis("k", s.keys);
      return loops_over({axis}, {make(ir::variable(axis.var))});
    };
    const auto old = [&](const Expr& k) { return ir::load(state, {k}); };
    const Local sum("sum", type), update("update", type);
    const compute::Axis time = compute::make_axis("t", s.time);
    const Expr t = ir::variable(time.var);
    const auto key = [&](const Expr& k) {
      return c.read(1, "key", {batch, t, group * s.keys + k});
    };
    std::vector<ir::Stmt> step;
    if (gated) {
      const bool by_key = c.input(4).shape[2] != s.groups;
      step.push_back(for_keys([&](const Expr& k) {
        const Expr factor = c.read(4, "decay", {batch, t, by_key ? group * s.keys + k : group});
        return ir::make_store(state, {k}, old(k) * as_type(factor));
      }));
    }
    const Expr value = c.read(2, "value", {batch, t, group * s.values + column});
    step.push_back(update.set(value));
    if (delta) {
      step.push_back(sum.set(literal(type, 0)));
      step.push_back(for_keys([&](const Expr& k) { return sum.set(sum.get() + old(k) * key(k)); }));
      const Expr place = c.input(5).shape[2] == 1 ? ir::constant(0) : group;
      const Expr beta = as_type(c.read(5, "beta", {batch, t, place}));
      step.push_back(update.set(beta * (update.get() - sum.get())));
    }
    step.push_back(for_keys(
        [&](const Expr& k) { return ir::make_store(state, {k}, old(k) + key(k) * update.get()); }));
    const compute::Axis member = compute::make_axis("h", s.heads / s.groups);
    const Expr head = group * (s.heads / s.groups) + ir::variable(member.var);
    step.push_back(loops_over(
        {member},
        {sum.set(literal(type, 0)), for_keys([&](const Expr& k) {
           return sum.set(sum.get() + old(k) * c.read(0, "query", {batch, t, head * s.keys + k}));
         }),
         c.store(0, {batch, t, head * s.values + column}, sum.get() * literal(type, scale))}));
    std::vector<ir::Stmt> all = {for_keys([&](const Expr& k) {
      const Expr start =
          past ? as_type(c.read(3, "past", {batch, group, k, column})) : literal(type, 0);
      return ir::make_store(state, {k}, start);
    })};
    all.push_back(loops_over({time}, step));
    if (c.node().outputs.size() > 1 && c.node().outputs[1] != kNoValue) {
      all.push_back(for_keys([&](const Expr& k) {
        return c.store(1, {batch, group, k, column}, old(k));
      }));
    }
    return std::vector{ir::make_alloc(state, {with_locals({sum, update}, all)})};
  });
}

Status expand_causal_conv(ExpandContext& c) {
  const Shape &x = c.shape(0), &w = c.shape(1);
  if (x.size() != 3 || w.size() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1)
    return c.fail("data of shape {} and weights of shape {}", to_string(x), to_string(w));
  const int64_t before = w[2] - 1;
  const Shape state = {x[0], x[1], before};
  if (c.has(3) && (c.shape(3) != state || c.dtype(3) != c.dtype(0)))
    return c.fail("past_state of shape {}, expected {}", to_string(c.shape(3)), to_string(state));
  const std::string activation = c.attributes().text("activation", "none");
  const bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none") return c.fail("activation is '{}'", activation);
  ValueId data = c.input(0);
  if (before > 0) {
    const ValueId past = c.has(3) ? c.input(3) : c.constant(Tensor(c.dtype(0), state));
    data = c.add("Concat", {past, data}, {{"axis", int64_t{2}}});
  }
  ValueId y = c.add("Conv", {data, c.input(1), c.input(2)}, {{"group", x[1]}});
  if (silu) y = c.binary("Mul", y, c.add("Sigmoid", {y}));
  c.result(0, y);
  c.result(1, c.slice(data, 2, x[2], x[2] + before));
  return ok_status();
}

}  // namespace

std::span<const Op> linear_attention_ops() {
  static const Op ops[] = {
      {.name = "LinearAttention",
       .since = 27,
       .min_inputs = 3,
       .max_inputs = 6,
       .max_outputs = 2,
       .attributes = "chunk_size:i kv_num_heads:i q_num_heads:i scale:f update_rule:s",
       .expand = expand_linear_attention},
      {.name = "hone.LinearAttention",
       .min_inputs = 3,
       .max_inputs = 6,
       .max_outputs = 2,
       .attributes = "kv_num_heads:i q_num_heads:i scale:f",
       .infer = infer_scan,
       .emit = emit_scan},
      {.name = "CausalConvWithState",
       .since = 27,
       .min_inputs = 2,
       .max_inputs = 4,
       .max_outputs = 2,
       .attributes = "activation:s",
       .expand = expand_causal_conv},
  };
  return ops;
}

}  // namespace hone::graph
