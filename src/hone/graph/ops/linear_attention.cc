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

// The statements of a row of values: a loop over time that carries the row's part of the state.
class ScanBody {
 public:
  ScanBody(EmitContext& c, const Sizes& sizes, const std::vector<Expr>& at)
      : c_(c),
        sizes_(sizes),
        type_(compute_type(c.input(0).dtype)),
        state_(ir::make_buffer("state", type_, {sizes.keys}, ir::Scope::kStack)),
        batch_(at[0]),
        group_(at[1]),
        column_(at[2]) {}

  std::vector<ir::Stmt> make() {
    std::vector<ir::Stmt> step;
    if (c_.node().has_input(4)) step.push_back(decay());
    const Expr value = c_.read(2, "value", {batch_, t_, group_ * sizes_.values + column_});
    step.push_back(update_.set(value));
    if (c_.node().has_input(5)) subtract_old(step);
    step.push_back(for_keys([&](const Expr& k) {
      return ir::make_store(state_, {k}, old(k) + key(k) * update_.get());
    }));
    step.push_back(results());
    std::vector<ir::Stmt> all = {for_keys([&](const Expr& k) {
      const bool past = c_.node().has_input(3);
      const Expr start =
          past ? as_type(c_.read(3, "past", {batch_, group_, k, column_})) : literal(type_, 0);
      return ir::make_store(state_, {k}, start);
    })};
    all.push_back(loops_over({time_}, step));
    if (c_.node().outputs.size() > 1 && c_.node().outputs[1] != kNoValue) {
      all.push_back(for_keys([&](const Expr& k) {
        return c_.store(1, {batch_, group_, k, column_}, old(k));
      }));
    }
    return {ir::make_alloc(state_, {with_locals({sum_, update_}, all)})};
  }

 private:
  [[nodiscard]] Expr as_type(const Expr& e) const {
    return e->type == type_ ? e : ir::cast(type_, e);
  }
  // A loop over the keys, with the element of the state for each.
  [[nodiscard]] ir::Stmt for_keys(const std::function<ir::Stmt(const Expr&)>& make) const {
    const compute::Axis axis = compute::make_axis("k", sizes_.keys);
    return loops_over({axis}, {make(ir::variable(axis.var))});
  }
  [[nodiscard]] Expr old(const Expr& k) const { return ir::load(state_, {k}); }
  [[nodiscard]] Expr key(const Expr& k) const {
    return c_.read(1, "key", {batch_, t_, group_ * sizes_.keys + k});
  }

  [[nodiscard]] ir::Stmt decay() const {
    const bool by_key = c_.input(4).shape[2] != sizes_.groups;
    return for_keys([&](const Expr& k) {
      const Expr place = by_key ? group_ * sizes_.keys + k : group_;
      const Expr factor = c_.read(4, "decay", {batch_, t_, place});
      return ir::make_store(state_, {k}, old(k) * as_type(factor));
    });
  }
  // The delta rule: what the state has for the key already is taken off.
  void subtract_old(std::vector<ir::Stmt>& step) const {
    step.push_back(sum_.set(literal(type_, 0)));
    step.push_back(for_keys([&](const Expr& k) { return sum_.set(sum_.get() + old(k) * key(k)); }));
    const Expr place = c_.input(5).shape[2] == 1 ? ir::constant(0) : group_;
    const Expr beta = as_type(c_.read(5, "beta", {batch_, t_, place}));
    step.push_back(update_.set(beta * (update_.get() - sum_.get())));
  }
  [[nodiscard]] ir::Stmt results() const {
    const double scale = c_.node().attributes.number("scale", 1);
    const compute::Axis member = compute::make_axis("h", sizes_.heads / sizes_.groups);
    const Expr head = group_ * (sizes_.heads / sizes_.groups) + ir::variable(member.var);
    return loops_over(
        {member}, {sum_.set(literal(type_, 0)), for_keys([&](const Expr& k) {
                     const Expr query = c_.read(0, "query", {batch_, t_, head * sizes_.keys + k});
                     return sum_.set(sum_.get() + old(k) * query);
                   }),
                   c_.store(0, {batch_, t_, head * sizes_.values + column_},
                            sum_.get() * literal(type_, scale))});
  }

  EmitContext& c_;
  const Sizes& sizes_;
  const DType type_;
  const ir::BufferPtr state_;
  const Expr batch_, group_, column_;
  const Local sum_{"sum", type_}, update_{"update", type_};
  const compute::Axis time_ = compute::make_axis("t", sizes_.time);
  const Expr t_ = ir::variable(time_.var);
};

void emit_scan(EmitContext& c) {
  const Sizes s = sizes_of(c.node().attributes, c.input(0).shape, c.input(2).shape);
  const std::vector<compute::Axis> points = {compute::make_axis("b", s.batch),
                                             compute::make_axis("g", s.groups),
                                             compute::make_axis("v", s.values)};
  c.body("linear_attention", points,
         [&](const std::vector<Expr>& at) { return ScanBody(c, s, at).make(); });
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
    const ValueId past = c.has(3) ? c.input(3) : uniform(c, c.dtype(0), state, 0);
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
