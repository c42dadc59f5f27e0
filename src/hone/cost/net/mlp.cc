// TenSet's MLP: two linear layers embed each statement, the statements are summed, two residual
// layers and a linear one follow.
#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

constexpr FamilyOption kOptions[] = {
    {"hidden", 256, 4, 4096, "width"}, kMeasure, kDecisions, kAnalytic, kDevices,
};

constexpr std::string_view kLast[] = {"residual0", "residual1", "head"};

Net make(const NetInputs& inputs, const Options& options) {
  NetBuilder b("mlp", inputs);
  const int64_t hidden = options.integer("hidden");
  Value tokens = linear_relu(b, "embed0", statements(b, options), hidden);
  tokens = linear_relu(b, "embed1", tokens, hidden);
  const Value sum = masked_sum(b, tokens, b.input("mask"));
  b.output("score", program_score(b, sum, options, hidden));
  return b.finish();
}

}  // namespace

constinit const Family kMlp = {
    .name = "mlp",
    .help = "the MLP of TenSet: statements are embedded and summed",
    .options = kOptions,
    .recipe = {.loss = "lambdarank"},
    .make = make,
    .last = kLast,
};

}  // namespace hone::cost::net
