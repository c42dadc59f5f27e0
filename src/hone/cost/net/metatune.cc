// MetaTune (Ryu and Sung 2021, section 4): graph convolutions over the loops of the program, a
// weighted sum and a maximum over the nodes, three linear layers. The score is the rate as a share
// of the task's best, which is FLOP/s where all schedules of a task have the same FLOPs.
//
// The paper does not say how many convolutions, how wide or how the nodes are weighed. Widths are
// those of its code (ryujaehun/maml: 64, then 64, 64 and 32), weights those of DGL's
// WeightedSumAndMax, which the wording is of.
#include "hone/cost/inputs/program_graph.h"
#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

constexpr FamilyOption kOptions[] = {
    {"super", 0, 0, 1, "1: reads the graph in a template for all tasks (a super-graph)"},
    {"layers", 2, 1, 8, "graph convolutions"},
    {"width", 64, 4, 1024, "width of the convolutions and of the first two linear layers"},
    {"task", 0, 0, 1, "1: reads the features of the task, too"},
    kMeasure,
    kDecisions,
    kAnalytic,
    {"device", 0, 0, 1, "1: reads the description of the device, too"},
    kDevices,
};

Value embedding_of_graphs(NetBuilder& b, const Options& options) {
  const Value mask = b.input("graph_mask"), edges = b.input("graph_edges");
  Value nodes = masked(b, normalised(b, "graph_nodes"), mask);
  for (int64_t i = 0; i < options.integer("layers"); ++i) {
    const std::string name = fmt::format("graph{}", i);
    nodes = masked(b, graph_convolution(b, name, nodes, edges, options.integer("width")), mask);
  }
  return weighted_sum_and_max(b, "nodes", nodes, mask);
}

// Only the root and the intervals have features, so that the first convolution needs only their
// edges. Places where a program has no loop are nodes like the others.
Value embedding_of_templates(NetBuilder& b, const Options& options) {
  const Value mask = b.input("template_mask");
  Value nodes = masked(b, normalised(b, "template_nodes"), mask);
  const int64_t places = b.dims(mask)[1], all = 2 * places - 1;
  const std::vector<float>& weights = template_edges();
  HONE_ASSERT(std::ssize(weights) == all * all, "edges of another template");
  const std::vector<float> first(weights.begin(), weights.begin() + places * all);
  Value edges = b.constant("template.first_edges", {places, all}, first);
  for (int64_t i = 0; i < options.integer("layers"); ++i) {
    if (i == 1) edges = b.constant("template.edges", {all, all}, weights);
    nodes = graph_convolution(b, fmt::format("graph{}", i), nodes, edges, options.integer("width"));
  }
  return weighted_sum_and_max(b, "nodes", nodes, {});
}

Net make(const NetInputs& inputs, const Options& options) {
  NetBuilder b("metatune", inputs);
  const int64_t width = options.integer("width");
  const Value embedding =
      options.flag("super") ? embedding_of_templates(b, options) : embedding_of_graphs(b, options);
  Value program = linear(b, "fc0", embedding, width, std::sqrt(2.0));
  const Value known = context(b, options);
  if (known.node >= 0) program = b.add(program, linear(b, "context", known, width));
  program = linear_relu(b, "fc1", b.relu(program), width);
  program = linear_relu(b, "fc2", program, width / 2);
  const Value score = heads(b, program, options.integer("devices"))[0];
  b.output("score", with_analytic(b, score, options));
  return b.finish();
}

constexpr std::string_view kLast[] = {"fc0", "fc1", "fc2", "head"};

}  // namespace

constinit const Family kMetatune = {
    .name = "metatune",
    .help = "MetaTune: graph convolutions over the loops of the program",
    .options = kOptions,
    .recipe = {.loss = "rmse", .epochs = 75, .batch = 128, .rate = 2e-3, .last_rate = 1e-5},
    .make = make,
    .last = kLast,
};

}  // namespace hone::cost::net
