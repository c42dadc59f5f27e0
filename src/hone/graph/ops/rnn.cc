// RNN, GRU and LSTM: one step of each.
#include "hone/graph/ops/recurrent.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

// H = f(X W + H R + b)
Status expand_rnn(ExpandContext& c) {
  Recurrent r(c, 1, {"Tanh"}, 1);
  return r.run([&](int64_t d) -> Recurrent::Step {
    const ValueId weights = r.recurrence(d, 0, 1);
    return [&c, &r, d, weights](ValueId gates, const std::vector<ValueId>& old) {
      const ValueId sum = c.binary("Add", c.binary("MatMul", old[0], weights), gates);
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
    return [&c, &r, d, weights, last, bias](ValueId gates, const std::vector<ValueId>& old) {
      const ValueId product = c.binary("MatMul", old[0], weights);
      const ValueId both =
          r.activate(d, 0, c.binary("Add", r.part(product, 1, 0, 2), r.part(gates, 1, 0, 2)));
      const ValueId update = r.part(both, 1, 0, 1), reset = r.part(both, 1, 1, 2);
      const auto with_bias = [&](ValueId x) {
        return bias == kNoValue ? x : c.binary("Add", x, bias);
      };
      const ValueId memory =
          last == kNoValue ? c.binary("Mul", reset, with_bias(r.part(product, 1, 2, 3)))
                           : with_bias(c.binary("MatMul", c.binary("Mul", reset, old[0]), last));
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
    return [&c, &r, d, multiplied, peepholes, coupled](ValueId gates,
                                                       const std::vector<ValueId>& old) {
      const ValueId sums = c.binary("Add", multiplied(old[0]), gates);
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

}  // namespace

std::span<const Op> rnn_ops() {
  static const Op ops[] = {
      expanded_op("RNN", 7, {3, 6, 2},
                  "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s "
                  "hidden_size:i layout:i",
                  expand_rnn),
      expanded_op("GRU", 7, {3, 6, 2},
                  "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s "
                  "hidden_size:i layout:i linear_before_reset:i",
                  expand_gru),
      expanded_op("LSTM", 7, {3, 8, 3},
                  "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s "
                  "hidden_size:i input_forget:i layout:i",
                  expand_float_lstm),
  };
  return ops;
}

}  // namespace hone::graph
