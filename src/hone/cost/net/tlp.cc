// TLP: no features of the program, but the sequence of its schedule's steps. Linear layers embed a
// step, attention and two residual layers follow, a decoder scores each step, the sum counts.
#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

constexpr FamilyOption kOptions[] = {
    {"hidden", 256, 8, 4096, "width; the layers before it have a quarter and a half of it"},
    {"heads", 8, 1, 64, "attention heads"},
    {"dropout", 0, 0, 0.9, "share of attention dropped in training", false},
    {"task", 1, 0, 1, "1: reads the features of the task: steps alone do not say what they split"},
    kMeasure,
    kDecisions,
    kAnalytic,
    {"device", 1, 0, 1, "1: reads the description of the device"},
    kDevices,
};

constexpr std::string_view kLast[] = {"decode0", "decode1", "head"};

Net make(const NetInputs& inputs, const Options& options) {
  NetBuilder b("tlp", inputs);
  const int64_t hidden = options.integer("hidden");
  const Value mask = b.input("steps_mask");
  Value tokens = masked(b, normalised(b, "steps"), mask);
  const int64_t widths[] = {hidden / 4, hidden / 2, hidden, hidden};
  for (size_t i = 0; i < std::size(widths); ++i)
    tokens = linear_relu(b, fmt::format("embed{}", i), tokens, widths[i]);
  const Value known = context(b, options);
  tokens = with_context(b, tokens, known, hidden);
  tokens = b.add(tokens, attention(b, "attention", tokens, options.integer("heads"),
                                   attention_mask(b, mask), options.number("dropout")));
  tokens = residual(b, "residual0", tokens);
  tokens = residual(b, "residual1", tokens);
  tokens = linear_relu(b, "decode0", tokens, hidden / 2);
  tokens = linear_relu(b, "decode1", tokens, hidden / 4);
  const Value score = heads(b, tokens, options.integer("devices"), 1, mask)[0];
  b.output("score", with_analytic(b, score, options));
  return b.finish();
}

}  // namespace

constinit const Family kTlp = {
    .name = "tlp",
    .help = "TLP: attention over the sequence of the schedule's steps",
    .options = kOptions,
    .recipe = {.loss = "lambdarank"},
    .make = make,
    .last = kLast,
};

}  // namespace hone::cost::net
