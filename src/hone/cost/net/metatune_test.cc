// The family metatune, and the layers of graphs that it is made of.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "hone/compute/dag_testing.h"
#include "hone/cost/inputs/model_inputs.h"
#include "hone/cost/inputs/program_graph.h"
#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"
#include "hone/cost/net/net_testing.h"
#include "hone/target/target.h"

namespace hone::cost::net {
namespace {

namespace dags = compute::testing;

Net metatune(bool super) {
  Net net = make_net(kMetatune, all_inputs(), {{"super", super ? 1 : 0}, {"width", 8}}).value();
  initialise(net, 3);
  return net;
}

std::vector<float>& input_of(const Net& net, NetBatch& batch, std::string_view name) {
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    if (net.inputs[i].name == name) return batch.inputs[i];
  }
  HONE_ASSERT(false, "an input that the net does not read");
  return batch.inputs[0];
}

// What the net reads of two schedules of a convolution.
NetBatch convolutions(const Net& net) {
  static const target::Target kMachine = target::find("x86-64-avx512").value();
  const space::Space space =
      space::Space::create(dags::conv2d({.h = 14, .w = 14, .ic = 32, .oc = 32}), kMachine).value();
  NetBatch batch{.rows = 2, .inputs = std::vector<std::vector<float>>(net.inputs.size())};
  for (int sketch = 0; sketch < 2; ++sketch) {
    const space::Candidate candidate = space.instantiate(space.default_point(sketch)).value();
    const ModelInputs inputs = model_inputs({&candidate, &kMachine, 2, 1}).value();
    for (size_t i = 0; i < net.inputs.size(); ++i) {
      const auto place = static_cast<size_t>(*find_input(net.inputs[i].name));
      batch.inputs[i].insert(batch.inputs[i].end(), inputs.values[place].begin(),
                             inputs.values[place].end());
    }
  }
  return batch;
}

TEST(metatune, has_the_widths_of_the_papers_code) {
  const auto features = static_cast<int64_t>(graph_node_names().size());
  const auto layer = [](int64_t from, int64_t to) { return from * to + to; };
  const int64_t weights = layer(features, 64) + layer(64, 64) + layer(64, 1) + layer(128, 64) +
                          layer(64, 64) + layer(64, 32) + layer(32, 1);
  for (const double super : {0.0, 1.0}) {
    const Net net = make_net(kMetatune, all_inputs(), {{"super", super}}).value();
    EXPECT_EQ(net.num_weights(), weights);
  }
}

TEST(metatune, tells_schedules_apart_in_both_forms) {
  for (const bool super : {false, true}) {
    const Net net = metatune(super);
    const std::vector<float> scores = evaluate(net, convolutions(net))[0];
    EXPECT_NE(scores[0], scores[1]);
  }
}

// Nodes have no order.
TEST(metatune, says_the_same_of_a_graph_whose_nodes_change_places) {
  const Net net = metatune(false);
  NetBatch batch = convolutions(net);
  const std::vector<float> before = evaluate(net, batch)[0];
  const auto size = static_cast<size_t>(kMaxGraphNodes), width = graph_node_names().size();
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), size_t{0});
  Rng rng(5);
  rng.shuffle(order);
  std::vector<float>& nodes = input_of(net, batch, "graph_nodes");
  std::vector<float>& edges = input_of(net, batch, "graph_edges");
  std::vector<float>& mask = input_of(net, batch, "graph_mask");
  const std::vector<float> old_nodes = nodes, old_edges = edges, old_mask = mask;
  for (size_t row = 0; row < 2; ++row) {
    for (size_t i = 0; i < size; ++i) {
      mask[row * size + i] = old_mask[row * size + order[i]];
      for (size_t f = 0; f < width; ++f)
        nodes[(row * size + i) * width + f] = old_nodes[(row * size + order[i]) * width + f];
      for (size_t k = 0; k < size; ++k)
        edges[(row * size + i) * size + k] = old_edges[(row * size + order[i]) * size + order[k]];
    }
  }
  ASSERT_NE(mask, old_mask);
  const std::vector<float> after = evaluate(net, batch)[0];
  for (size_t row = 0; row < 2; ++row)
    EXPECT_NEAR(after[row], before[row], 1e-5 * (1 + std::abs(before[row])));
}

// What padding holds changes no score, nor does an edge to it.
TEST(metatune, does_not_see_nodes_that_there_are_not) {
  for (const bool super : {false, true}) {
    const Net net = metatune(super);
    NetBatch batch = convolutions(net);
    const std::vector<float> before = evaluate(net, batch)[0];
    const std::vector<float> mask = input_of(net, batch, super ? "template_mask" : "graph_mask");
    std::vector<float>& nodes = input_of(net, batch, super ? "template_nodes" : "graph_nodes");
    const size_t width = graph_node_names().size(), size = mask.size() / 2;
    for (size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] != 0) continue;
      for (size_t f = 0; f < width; ++f) nodes[i * width + f] = 7;
      if (super) continue;
      std::vector<float>& edges = input_of(net, batch, "graph_edges");
      const size_t first = i / size * size;
      for (size_t k = 0; k < size; ++k)
        edges[i * size + k] = edges[(first + k) * size + i % size] = 3;
    }
    EXPECT_EQ(evaluate(net, batch)[0], before);
  }
}

// Two nodes and four features by hand: relu(edges * nodes * weight + bias).
TEST(metatune, a_convolution_is_the_same_with_edges_of_all_and_of_each) {
  const NetBatch batch{.rows = 1, .inputs = {{1, 2, 3, 4}, {0.5, 0.25, 0.25, 1}}};
  for (const bool constant : {false, true}) {
    NetBuilder b("test", {{"nodes", {2, 2}}, {"graph_edges", {2, 2}}});
    const Value nodes = b.input("nodes"), given = b.input("graph_edges");
    const Value edges = constant ? b.constant("edges", {2, 2}, {0.5, 0.25, 0.25, 1}) : given;
    const Value made = graph_convolution(b, "graph", nodes, edges, 2);
    b.output("score", b.reduce_sum(b.reduce_sum(nodes, 1), 1, true));
    b.output("nodes", made);
    Net net = b.finish();
    net.find_parameter("graph.weight")->values = {1, -1, 2, 1};
    net.find_parameter("graph.bias")->values = {0.5, -1};
    // nodes * weight = {5, 1}, {11, 1}
    EXPECT_EQ(evaluate(net, batch)[1], (std::vector<float>{5.75, 0, 12.75, 0.25}));
  }
}

TEST(metatune, nodes_are_summed_by_weight_and_the_largest_is_no_padding) {
  NetBuilder b("test", {{"nodes", {3, 2}}, {"graph_mask", {3}}});
  const Value nodes = b.input("nodes");
  const Value read = weighted_sum_and_max(b, "nodes", nodes, b.input("graph_mask"));
  b.output("score", b.reduce_sum(b.reduce_sum(nodes, 1), 1, true));
  b.output("read", read);
  Net net = b.finish();
  net.find_parameter("nodes.weight")->values = {0, 0};  // a half of each
  net.find_parameter("nodes.bias")->values = {0};
  const NetBatch batch{.rows = 1, .inputs = {{-1, 2, -3, 5, 9, 9}, {1, 1, 0}}};
  EXPECT_EQ(evaluate(net, batch)[1], (std::vector<float>{-2, 3.5, -1, 5}));
}

}  // namespace
}  // namespace hone::cost::net
