// An LSTM over the statements in the order of the program, unrolled; its last state is scored.
// Padding leaves the state as it is.
#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

constexpr FamilyOption kOptions[] = {
    {"hidden", 256, 4, 4096, "width of the state; ATFormer's comparison has 1024"},
    kTags,
    kDevices,
};

Net make(const NetInputs& inputs, const Options& options) {
  NetBuilder b("lstm", inputs);
  const int64_t hidden = options.integer("hidden");
  const Value mask = b.input("mask");
  const int64_t length = b.dims(mask)[1];
  const Value embedded = linear_relu(b, "embed", statements(b, options), hidden);
  const Value entering = linear(b, "gates", embedded, 4 * hidden);  // of all steps at once
  const Value weight = b.parameter("recurrent.weight", {hidden, 4 * hidden}, {Fill::kXavier});
  const Value one = b.scalar(1);
  Value state, cell;
  for (int64_t i = 0; i < length; ++i) {
    Value gates = b.reshape(b.slice(entering, 1, i, i + 1), {-1, 4 * hidden});
    if (i > 0) gates = b.add(gates, b.matmul(state, weight));
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
    state = keep(seen, state);
  }
  b.output("score", heads(b, state, options.integer("devices"))[0]);
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
