// LSTMs over the statements in the order of the program, unrolled; the last state is scored.
// Padding leaves the state as it is.
#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

constexpr FamilyOption kOptions[] = {
    {"hidden", 256, 4, 4096, "width of the state; ATFormer's comparison has 1024"},
    {"layers", 1, 1, 8, "each reads the states of the one before; Fasor's comparison has 2"},
    kTags,
    kDevices,
};

// The states of a layer after each of the statements, of what enters its gates, {-1, length, 4 *
// hidden}.
std::vector<Value> states_of(NetBuilder& b, Value entering, Value weight, Value mask,
                             int64_t hidden) {
  const Value one = b.scalar(1);
  std::vector<Value> states;
  Value cell;
  for (int64_t i = 0; i < b.dims(mask)[1]; ++i) {
    Value gates = b.reshape(b.slice(entering, 1, i, i + 1), {-1, 4 * hidden});
    if (i > 0) gates = b.add(gates, b.matmul(states.back(), weight));
    const auto gate = [&](int64_t k) { return b.slice(gates, 1, k * hidden, (k + 1) * hidden); };
    Value next = b.mul(b.sigmoid(gate(0)), b.tanh(gate(1)));
    if (i > 0) next = b.add(next, b.mul(b.sigmoid(gate(2)), cell));
    const Value seen = b.mul(b.sigmoid(gate(3)), b.tanh(next));
    const Value real = b.slice(mask, 1, i, i + 1);
    const auto keep = [&](Value fresh, Value old) {
      const Value taken = b.mul(fresh, real);
      return i == 0 ? taken : b.add(taken, b.mul(old, b.sub(one, real)));
    };
    cell = keep(next, cell);
    states.push_back(keep(seen, i == 0 ? seen : states.back()));
  }
  return states;
}

Net make(const NetInputs& inputs, const Options& options) {
  NetBuilder b("lstm", inputs);
  const int64_t hidden = options.integer("hidden");
  const Value mask = b.input("mask");
  Value sequence = linear_relu(b, "embed", statements(b, options), hidden);
  std::vector<Value> states;
  for (int64_t layer = 0; layer < options.integer("layers"); ++layer) {
    const std::string number = layer == 0 ? "" : std::to_string(layer);
    if (layer > 0) {
      for (Value& state : states) state = b.reshape(state, {-1, 1, hidden});
      sequence = b.concat(states, 1);
    }
    const Value entering = linear(b, "gates" + number, sequence, 4 * hidden);  // all at once
    const Value weight =
        b.parameter("recurrent" + number + ".weight", {hidden, 4 * hidden}, {Fill::kXavier});
    states = states_of(b, entering, weight, mask, hidden);
  }
  b.output("score", heads(b, states.back(), options.integer("devices"))[0]);
  return b.finish();
}

}  // namespace

constinit const Family kLstm = {
    .name = "lstm",
    .help = "an LSTM over the features of the statements",
    .options = kOptions,
    .recipe = {.loss = "lambdarank"},
    .make = make,
};

}  // namespace hone::cost::net
