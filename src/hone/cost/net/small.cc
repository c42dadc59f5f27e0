// A net for search: narrow, so that it ranks tens of thousands of candidates a second. It reads
// what the analytic model says, both where statements are embedded and where the program is scored.
#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

constexpr FamilyOption kOptions[] = {
    {"hidden", 64, 4, 1024, "width"},
    {"layers", 1, 0, 4, "encoder layers"},
    {"heads", 4, 1, 64, "attention heads"},
    {"dropout", 0, 0, 0.9, "share of values dropped in training", false},
    {"task", 1, 0, 1, "1: reads the features of the task"},
    {"measure", 1, 0, 1, "1: reads the parts of the analytic model"},
    {"decisions", 1, 0, 1, "1: reads what was decided of the schedule"},
    kAnalytic,
    {"device", 0, 0, 1, "1: reads the description of the device"},
    kDevices,
};

constexpr std::string_view kLast[] = {"program", "residual", "head"};

Net make(const NetInputs& inputs, const Options& options) {
  NetBuilder b("small", inputs);
  const int64_t hidden = options.integer("hidden");
  const Value mask = b.input("mask");
  const Value known = context(b, options);
  Value tokens = linear(b, "embed", statements(b, options), hidden);
  tokens = with_context(b, tokens, known, hidden);
  tokens = b.relu(tokens);
  const int64_t layers = options.integer("layers");
  const Value term = layers > 0 ? attention_mask(b, mask) : Value();
  tokens = encoder(b, tokens, term,
                   {layers, options.integer("heads"), hidden, options.number("dropout")});
  Value program = masked_mean(b, tokens, mask);
  if (known.node >= 0) program = b.concat({program, known}, 1);
  program = linear_relu(b, "program", program, hidden);
  program = residual(b, "residual", program);
  const Value score = heads(b, program, options.integer("devices"))[0];
  b.output("score", with_analytic(b, score, options));
  return b.finish();
}

}  // namespace

constinit const Family kSmall = {
    .name = "small",
    .help = "a narrow encoder that also reads the analytic model: fast enough to guide a search",
    .options = kOptions,
    .recipe = {.loss = "pairwise", .epochs = 12, .rate = 2e-3, .decay = 1},
    .make = make,
    .last = kLast,
};

}  // namespace hone::cost::net
