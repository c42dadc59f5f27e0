// Multi-head attention as TenSet has it: two linear layers embed each statement, one layer of
// attention is added, the statements are summed, two residual layers follow.
#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

constexpr FamilyOption kOptions[] = {
    {"hidden", 512, 4, 4096, "width; TenSet has 1024"},
    {"heads", 8, 1, 64, "attention heads"},
    {"dropout", 0, 0, 0.9, "share of attention dropped in training", false},
    kMeasure,
    kDecisions,
    kAnalytic,
    kDevices,
};

constexpr std::string_view kLast[] = {"residual0", "residual1", "head"};

Net make(const NetInputs& inputs, const Options& options) {
  NetBuilder b("mha", inputs);
  const int64_t hidden = options.integer("hidden");
  const Value mask = b.input("mask");
  Value tokens = linear_relu(b, "embed0", statements(b, options), hidden);
  tokens = linear_relu(b, "embed1", tokens, hidden);
  tokens = b.add(tokens, attention(b, "attention", tokens, options.integer("heads"),
                                   attention_mask(b, mask), options.number("dropout")));
  const Value sum = masked_sum(b, tokens, mask);
  b.output("score", program_score(b, sum, options, hidden));
  return b.finish();
}

}  // namespace

constinit const Family kMha = {
    .name = "mha",
    .help = "multi-head attention of TenSet: one layer over the features of the statements",
    .options = kOptions,
    .recipe = {.loss = "lambdarank"},
    .make = make,
    .last = kLast,
};

}  // namespace hone::cost::net
