// ATFormer (its section 3, tables 16 to 18): two linear layers embed each statement, self-attention
// lets statements see each other, a linear layer scores each, the score of a program is their sum.
#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

constexpr FamilyOption kOptions[] = {
    {"layers", 2, 1, 8, "encoder layers; 1 is ATFormer-1L"},
    {"hidden", 512, 4, 4096, "width"},
    {"heads", 4, 1, 64, "attention heads"},
    {"mask", 1, 0, 1, "1: statements do not attend to padding (ATFormer-Mask)"},
    {"dropout", 0.1, 0, 0.9, "share of values dropped in training", false},
    {"task", 0, 0, 1, "1: reads the features of the task, too"},
    kMeasure,
    kDecisions,
    kAnalytic,
    {"device", 0, 0, 1, "1: reads the description of the device, too"},
    kTags,
    kDevices,
};

Net make(const NetInputs& inputs, const Options& options) {
  NetBuilder b("atformer", inputs);
  const int64_t hidden = options.integer("hidden");
  const Value mask = b.input("mask");
  Value tokens = linear_relu(b, "embed0", statements(b, options), hidden);
  tokens = linear_relu(b, "embed1", tokens, hidden);
  const Value known = context(b, options);
  tokens = with_context(b, tokens, known, hidden);
  const Value term = options.flag("mask") ? attention_mask(b, mask) : Value();
  tokens = encoder(
      b, tokens, term,
      {options.integer("layers"), options.integer("heads"), hidden, options.number("dropout")});
  const Value score = heads(b, tokens, options.integer("devices"), 1, mask)[0];
  b.output("score", with_analytic(b, score, options));
  return b.finish();
}

}  // namespace

constinit const Family kAtformer = {
    .name = "atformer",
    .help = "ATFormer: an encoder over the features of the statements",
    .options = kOptions,
    .recipe = {.loss = "lambdarank"},
    .make = make,
};

}  // namespace hone::cost::net
