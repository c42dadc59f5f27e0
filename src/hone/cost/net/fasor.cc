// Fasor's cost model (its section 5): a transformer encoder and a linear layer with three outputs,
// the time and how much of it memory and the cores bound. Here tokens are statements; what is known
// of the task and the device is added to each. "time" is log_time() (cost/net/train.h): trained on
// it, the net says how long a schedule takes, not only which is faster.
#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

constexpr FamilyOption kOptions[] = {
    {"layers", 4, 1, 12, "encoder layers"},
    {"hidden", 128, 4, 4096, "width"},
    {"heads", 8, 1, 64, "attention heads"},
    {"inner", 512, 4, 8192, "width between the two linear layers of an encoder layer"},
    {"dropout", 0.1, 0, 0.9, "share of values dropped in training", false},
    {"task", 1, 0, 1, "1: reads the features of the task"},
    kMeasure,
    kDecisions,
    {"device", 1, 0, 1, "1: reads the description of the device"},
    kDevices,
};

Net make(const NetInputs& inputs, const Options& options) {
  NetBuilder b("fasor", inputs);
  const int64_t hidden = options.integer("hidden");
  const Value mask = b.input("mask");
  Value tokens = linear(b, "embed", statements(b, options), hidden);
  const Value known = context(b, options);
  tokens = with_context(b, tokens, known, hidden);
  tokens = layer_norm(b, "embed.norm", tokens);
  const Value term = attention_mask(b, mask);
  tokens = encoder(b, tokens, term,
                   {options.integer("layers"), options.integer("heads"), options.integer("inner"),
                    options.number("dropout")});
  const std::vector<Value> said =
      heads(b, masked_mean(b, tokens, mask), options.integer("devices"), 3);
  const Value time = said[0];
  b.output("score", b.sub(b.scalar(0), time));
  b.output("time", time);
  b.output("memory_bound", b.sigmoid(said[1]));
  b.output("core_bound", b.sigmoid(said[2]));
  return b.finish();
}

}  // namespace

constinit const Family kFasor = {
    .name = "fasor",
    .help = "Fasor's transformer: time, memory-bound and core-bound score of a program",
    .options = kOptions,
    .recipe = {.loss = "multitask",
               .epochs = 20,
               .batch = 64,
               .rate = 5e-4,
               .last_rate = 0,
               .decay = 0.01,
               .clip = 1,
               .cosine = false},
    .make = make,
};

}  // namespace hone::cost::net
