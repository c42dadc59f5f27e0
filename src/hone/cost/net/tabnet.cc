// TabNet (Arik and Pfister 2020) per statement, as TenSet uses it: a few decision steps, each looks
// at the features that a sparse mask selects. Layer norms stand for batch norms, so that a
// schedule's score does not depend on others. The scores of the statements are summed.
#include <cmath>

#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

constexpr FamilyOption kOptions[] = {
    {"steps", 3, 1, 10, "decision steps"},
    {"decision", 8, 1, 256, "width of a step's decision; ATFormer's comparison has 1"},
    {"attention", 8, 1, 256, "width of what the next step's mask is made of"},
    {"relax", 1.3, 1, 4, "how far features may be looked at again; 1: never", false},
    kDevices,
};

// A gated linear unit: half of what a linear layer gives, where the other half opens.
Value gated(NetBuilder& b, const std::string& name, Value value, int64_t width) {
  const Value both = linear(b, name, value, 2 * width);
  const int axis = static_cast<int>(b.dims(both).size()) - 1;
  const Value half =
      b.mul(b.slice(both, axis, 0, width), b.sigmoid(b.slice(both, axis, width, 2 * width)));
  return layer_norm(b, name + ".norm", half);
}

Net make(const NetInputs& inputs, const Options& options) {
  NetBuilder b("tabnet", inputs);
  const int64_t decision = options.integer("decision"), attentive = options.integer("attention");
  const int64_t width = decision + attentive;
  const Value features = statements(b, options), mask = b.input("mask");
  const int64_t count = b.dims(features)[2];
  const Value half = b.scalar(std::sqrt(0.5)), relax = b.scalar(options.number("relax"));
  const auto transform = [&](const std::string& name, Value value) {
    const Value first = gated(b, name + ".gate0", value, width);
    return b.mul(b.add(first, gated(b, name + ".gate1", first, width)), half);
  };
  Value looked = transform("start", features);
  Value left, decided;  // what may be looked at still; the sum of all decisions
  for (int64_t i = 0; i < options.integer("steps"); ++i) {
    const std::string name = fmt::format("step{}", i);
    Value wanted = layer_norm(
        b, name + ".norm", linear(b, name + ".mask", b.slice(looked, 2, decision, width), count));
    if (left.node >= 0) wanted = b.mul(wanted, left);
    const Value chosen = sparsemax(b, wanted);
    const Value rest = b.sub(relax, chosen);
    left = left.node >= 0 ? b.mul(left, rest) : rest;
    looked = transform(name, b.mul(features, chosen));
    const Value said = b.relu(b.slice(looked, 2, 0, decision));
    decided = decided.node >= 0 ? b.add(decided, said) : said;
  }
  b.output("score", heads(b, decided, options.integer("devices"), 1, mask)[0]);
  return b.finish();
}

}  // namespace

constinit const Family kTabnet = {
    .name = "tabnet",
    .help = "TabNet: steps that look at a few features of a statement each",
    .options = kOptions,
    .recipe = {.loss = "lambdarank"},
    .make = make,
};

}  // namespace hone::cost::net
