// RNN, GRU and LSTM: one step of each.
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/pointwise.h"
#include "hone/graph/ops/recurrent.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;

Expr sigmoid(const Expr& x) { return apply<ir::Op::kSigmoid>(x); }
Expr tanh(const Expr& x) { return apply<ir::Op::kTanh>(x); }

// hone.LstmCell: the new cell of the sums of the gates i, f and c, and of the old one, in one
// kernel.
void emit_lstm_cell(EmitContext& c) {
  c.pointwise("lstm_cell", [&](const Point& point) {
    const Expr in = c.operand(0, "in", point), forget = c.operand(1, "forget", point);
    const Expr fresh = c.operand(2, "fresh", point), cell = c.operand(3, "cell", point);
    return sigmoid(forget) * cell + sigmoid(in) * tanh(fresh);
  });
}

// hone.LstmState: the new state of the sum of the gate o and of the new cell.
void emit_lstm_state(EmitContext& c) {
  c.pointwise("lstm_state", [&](const Point& point) {
    return sigmoid(c.operand(0, "out", point)) * tanh(c.operand(1, "cell", point));
  });
}

// hone.GruState: the new state of the input's parts of the gates z, r and h, of the old state's
// parts of them, and of the old state.
void emit_gru_state(EmitContext& c) {
  c.pointwise("gru_state", [&](const Point& point) {
    const Expr update = sigmoid(c.operand(0, "update", point) + c.operand(3, "update_h", point));
    const Expr reset = sigmoid(c.operand(1, "reset", point) + c.operand(4, "reset_h", point));
    const Expr fresh = tanh(reset * c.operand(5, "fresh_h", point) + c.operand(2, "fresh", point));
    return fresh + update * (c.operand(6, "old", point) - fresh);
  });
}

// hone.LastStep: for data of [steps, batch, hidden], each row's element of its last step, as
// [batch, hidden], and 0 of a row without steps. The operands behind the data are the number of
// steps of the run, i64[1], and those of each row, i32[batch]; one of them may be missing.
Status infer_last_step(InferContext& c) {
  return c.set(0, c.dtype(0), {c.shape(0)[1], c.shape(0)[2]});
}

void emit_last_step(EmitContext& c) {
  const int64_t steps = c.input(0).shape[0];
  c.name_dims({"row", "state"});
  c.reduce(Combine::kSum, StageTag("last_step", "last_step"), {compute::make_axis("step", steps)},
           [&](const Point& point, const std::vector<Expr>& r) {
             const Expr x = c.read(0, "data", {r[0], point.index[0], point.index[1]});
             Expr end = ir::constant(steps), is_there = ir::constant_bool(true);
             if (c.node().has_input(1)) {
               end = c.read(1, "steps", {ir::constant(0)});
               is_there = ir::less(r[0], end);
             }
             if (c.node().has_input(2))
               end = ir::min(end, ir::cast(DType::kI64, c.read(2, "length", {point.index[0]})));
             const Expr is_last = ir::make(ir::Op::kEq, {r[0] + 1, end});
             return ir::select(ir::logical_and(is_there, is_last), x, lit(x, 0));
           });
}

// hone.ReverseSteps: data of [steps, batch, n] with the steps of each row in the opposite order.
// Steps behind its last one stay where they are. The operands are those of hone.LastStep.
Status infer_reverse_steps(InferContext& c) { return c.set(0, c.dtype(0), c.shape(0)); }

void emit_reverse_steps(EmitContext& c) {
  element_body(c, "reverse_steps", [&](const std::vector<Expr>& index) {
    Expr end = ir::constant(c.input(0).shape[0]);
    if (c.node().has_input(1)) end = c.read(1, "steps", {ir::constant(0)});
    if (c.node().has_input(2))
      end = ir::min(end, ir::cast(DType::kI64, c.read(2, "length", {index[1]})));
    std::vector<Expr> from = index;
    from[0] = ir::select(ir::less(index[0], end), end - index[0] - 1, index[0]);
    return c.read(0, "data", from);
  });
}

// hone.Recurrence: the types and shapes of the results of a recurrent net, for probes that look at
// nothing else. W and R may be laid out in either way (graph/ops/recurrent.h).
Status infer_recurrence(InferContext& c) {
  const Shape &x = c.shape(0), &r = c.shape(2);
  if (x.size() != 3 || r.size() != 3)
    return c.fail("operands of shapes {} and {}", to_string(x), to_string(r));
  const int64_t directions = r[0], hidden = std::min(r[1], r[2]);
  const bool batch_first = c.attributes().integer("layout", 0) != 0;
  const int64_t batch = x[batch_first ? 0 : 1];
  HONE_RETURN_IF_ERROR(c.set(0, c.dtype(0),
                             batch_first ? Shape{batch, x[1], directions, hidden}
                                         : Shape{x[0], directions, batch, hidden}));
  for (const size_t state : {1, 2}) {
    HONE_RETURN_IF_ERROR(
        c.set(state, c.dtype(0),
              batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden}));
  }
  return ok_status();
}

// H = f(X W + H R + b)
Status expand_rnn(ExpandContext& c) {
  Recurrent r(c, 1, {"Tanh"}, 1);
  return r.run([&](int64_t d) -> Recurrent::Step {
    const ValueId weights = r.recurrence(d, 0, 1);
    return [&c, &r, d, weights](ValueId gates, const std::vector<ValueId>& old) {
      const ValueId sum =
          r.vanishes(old[0]) ? gates : c.binary("Add", c.binary("MatMul", old[0], weights), gates);
      return std::vector{r.activate(d, 0, sum)};
    };
  });
}

// Gates z (update), r (reset), h (hidden).
Status expand_gru(ExpandContext& c) {
  Recurrent r(c, 3, {"Sigmoid", "Tanh"}, 1);
  r.keep_bias_apart(2);
  const bool reset_after = c.attributes().integer("linear_before_reset", 0) != 0;
  return r.run([&, reset_after](int64_t d) -> Recurrent::Step {
    const ValueId weights = r.recurrence(d, 0, reset_after ? 3 : 2);
    const ValueId last = reset_after ? kNoValue : r.recurrence(d, 2, 3);
    const ValueId bias = r.recurrent_bias(d, 2, 3);
    const bool fused = reset_after && r.is_usual(d);
    const auto multiplied = [&c, &r](ValueId state, ValueId by) {
      if (!r.vanishes(state)) return c.binary("MatMul", state, by);
      return uniform(c, c.dtype_of(by), {c.shape_of(state)[0], c.shape_of(by)[1]}, 0);
    };
    return [&c, &r, d, weights, last, bias, fused, multiplied](ValueId gates,
                                                               const std::vector<ValueId>& old) {
      const ValueId product = multiplied(old[0], weights);
      if (fused) {
        std::vector<ValueId> operands;
        for (const ValueId of : {gates, product}) {
          for (int64_t k = 0; k < 3; ++k) operands.push_back(r.part(of, 1, k, k + 1));
        }
        if (bias != kNoValue) operands.back() = c.binary("Add", operands.back(), bias);
        operands.push_back(old[0]);
        return std::vector{c.add("hone.GruState", operands)};
      }
      const ValueId both =
          r.activate(d, 0, c.binary("Add", r.part(product, 1, 0, 2), r.part(gates, 1, 0, 2)));
      const ValueId update = r.part(both, 1, 0, 1), reset = r.part(both, 1, 1, 2);
      const auto with_bias = [&](ValueId x) {
        return bias == kNoValue ? x : c.binary("Add", x, bias);
      };
      const auto reset_before = [&] {
        return multiplied(r.vanishes(old[0]) ? old[0] : c.binary("Mul", reset, old[0]), last);
      };
      const ValueId memory = last == kNoValue
                                 ? c.binary("Mul", reset, with_bias(r.part(product, 1, 2, 3)))
                                 : with_bias(reset_before());
      const ValueId fresh = r.activate(d, 1, c.binary("Add", memory, r.part(gates, 1, 2, 3)));
      // (1 - z) h + z H
      const ValueId change = c.binary("Mul", update, c.binary("Sub", old[0], fresh));
      return std::vector{c.binary("Add", fresh, change)};
    };
  });
}

}  // namespace

Recurrent make_lstm(ExpandContext& c) { return {c, 4, {"Sigmoid", "Tanh", "Tanh"}, 2}; }

// Gates i (input), o (output), f (forget), c (cell); peepholes of i, o, f.
Status expand_lstm(ExpandContext& c, Recurrent& r) {
  if (c.has(7) && c.rank(7) != 2) return c.fail("peepholes of shape {}", to_string(c.shape(7)));
  const bool coupled = c.attributes().integer("input_forget", 0) != 0;
  return r.run([&, coupled](int64_t d) -> Recurrent::Step {
    const auto multiplied = r.recurrent_product(d);
    const ValueId peepholes = r.of_direction(7, d);
    const bool fused = peepholes == kNoValue && !coupled && r.is_usual(d);
    return [&c, &r, d, multiplied, peepholes, coupled, fused](ValueId gates,
                                                              const std::vector<ValueId>& old) {
      const ValueId sums = r.vanishes(old[0]) ? gates : c.binary("Add", multiplied(old[0]), gates);
      if (fused) {
        const auto sum = [&](int64_t k) { return r.part(sums, 1, k, k + 1); };
        const ValueId cell = c.add("hone.LstmCell", {sum(0), sum(2), sum(3), old[1]});
        return std::vector{c.add("hone.LstmState", {sum(1), cell}), cell};
      }
      const auto gate = [&](int64_t k, ValueId cell) {
        ValueId x = r.part(sums, 1, k, k + 1);
        if (peepholes != kNoValue)
          x = c.binary("Add", x, c.binary("Mul", cell, r.part(peepholes, 0, k, k + 1)));
        return r.activate(d, 0, x);
      };
      const ValueId in = gate(0, old[1]);
      const ValueId forget =
          coupled ? c.add("Sub", {c.scalar(c.dtype_of(in), 1), in}) : gate(2, old[1]);
      const ValueId fresh = r.activate(d, 1, r.part(sums, 1, 3, 4));
      const ValueId cell =
          c.binary("Add", c.binary("Mul", forget, old[1]), c.binary("Mul", in, fresh));
      const ValueId out = gate(1, cell);
      return std::vector{c.binary("Mul", out, r.activate(d, 2, cell)), cell};
    };
  });
}

namespace {

Status expand_float_lstm(ExpandContext& c) {
  Recurrent r = make_lstm(c);
  return expand_lstm(c, r);
}

Op state_op(std::string_view name, int operands, void (*emit)(EmitContext&)) {
  return {.name = name,
          .min_inputs = operands,
          .max_inputs = operands,
          .kind = Kind::kElementwise,
          .layout = Layout::kFollow,
          .infer = infer_float_binary,
          .fold = evaluate_node,
          .emit = emit};
}

}  // namespace

std::span<const Op> rnn_ops() {
  constexpr std::string_view kOfRnn =
      "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i "
      "layout:i";
  constexpr std::string_view kOfGru =
      "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i "
      "layout:i linear_before_reset:i";
  constexpr std::string_view kOfLstm =
      "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i "
      "input_forget:i layout:i";
  constexpr std::string_view kOfAll =
      "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i "
      "input_forget:i layout:i linear_before_reset:i";
  constexpr int kMost = static_cast<int>(kStepsOfRun) + 1;
  static const Op ops[] = {
      expanded_op("RNN", 7, {3, 6, 2}, kOfRnn, expand_rnn),
      expanded_op("GRU", 7, {3, 6, 2}, kOfGru, expand_gru),
      expanded_op("LSTM", 7, {3, 8, 3}, kOfLstm, expand_float_lstm),
      expanded_op("hone.RNN", 7, {3, kMost, 2}, kOfRnn, expand_rnn),
      expanded_op("hone.GRU", 7, {3, kMost, 2}, kOfGru, expand_gru),
      expanded_op("hone.LSTM", 7, {3, kMost, 3}, kOfLstm, expand_float_lstm),
      {.name = "hone.Recurrence",
       .min_inputs = 3,
       .max_inputs = kMost,
       .max_outputs = 3,
       .attributes = kOfAll,
       .infer = infer_recurrence},
      state_op("hone.LstmCell", 4, emit_lstm_cell),
      state_op("hone.LstmState", 2, emit_lstm_state),
      state_op("hone.GruState", 7, emit_gru_state),
      {.name = "hone.LastStep",
       .max_inputs = 3,
       .kind = Kind::kReduction,
       .infer = infer_last_step,
       .fold = evaluate_node,
       .emit = emit_last_step},
      {.name = "hone.ReverseSteps",
       .max_inputs = 3,
       .infer = infer_reverse_steps,
       .fold = evaluate_node,
       .emit = emit_reverse_steps},
  };
  return ops;
}

}  // namespace hone::graph
