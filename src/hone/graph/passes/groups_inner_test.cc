#include <gtest/gtest.h>

#include "hone/graph/passes/pass_testing.h"

namespace hone::graph {
namespace {

using Types = std::vector<std::string>;

Status with_eight_lanes(Graph& graph) { return groups_inner(graph, {.lanes = 8}); }
Status with_sixteen_lanes(Graph& graph) { return groups_inner(graph, {.lanes = 16}); }

// A convolution with a bias; its weights are named after its result.
TestModel& conv(TestModel& model, Rng& rng, const std::string& from, const std::string& to,
                Shape weight, int64_t groups = 1) {
  const int64_t pad = weight[2] / 2, outputs = weight[0];
  model.constant(to + ".w", random_tensor(weight, rng))
      .constant(to + ".b", random_tensor({outputs}, rng));
  return model.node("Conv", {from, to + ".w", to + ".b"}, {to},
                    {{"group", groups}, {"pads", Shape{pad, pad, pad, pad}}});
}

// 1x1, grouped 3x3, 1x1 with Relu between, as ResNeXt has them.
TestModel bottleneck(Rng& rng, int64_t groups, int64_t inputs, int64_t outputs) {
  TestModel model;
  model.input("x", {1, 6, 5, 7});
  conv(model, rng, "x", "a", {groups * inputs, 6, 1, 1}).node("Relu", {"a"}, {"ar"});
  conv(model, rng, "ar", "b", {groups * outputs, inputs, 3, 3}, groups).node("Relu", {"b"}, {"br"});
  conv(model, rng, "br", "y", {5, groups * outputs, 1, 1}).output("y");
  return model;
}

TEST(groups_inner, what_shuffles_channels_goes_into_the_weights_around) {
  Rng rng(1);
  for (const auto& [inputs, outputs] : {std::pair{4, 4}, {2, 3}, {1, 2}, {3, 1}}) {
    const Graph graph = run_pass(bottleneck(rng, 8, inputs, outputs).graph(), with_eight_lanes,
                                 {random_tensor({1, 6, 5, 7}, rng)});
    EXPECT_EQ(types(graph), (Types{"Conv", "Relu", "hone.ConvGroupsInner", "Relu", "Conv"}))
        << inputs << " " << outputs;
  }
}

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.name);
  return names;
}

// The name of a task in `hone show` is the model's name of its first operator.
TEST(groups_inner, operators_keep_their_names) {
  Rng rng(8);
  const Tensor x = random_tensor({1, 6, 5, 7}, rng);
  EXPECT_EQ(names(run_pass(bottleneck(rng, 8, 4, 4).graph(), with_eight_lanes, {x})),
            (Types{"node_a", "node_ar", "node_b", "node_br", "node_y"}));
  TestModel model;  // with a shuffle on its own
  model.input("x", {1, 6, 5, 7}).constant("parts", ints({1, 3, 4, 5, 7}));
  model.constant("whole", ints({1, 12, 5, 7}));
  conv(model, rng, "x", "a", {12, 6, 1, 1}).node("Relu", {"a"}, {"r"});
  model.node("Reshape", {"r", "parts"}, {"p"});
  model.node("Transpose", {"p"}, {"t"}, {{"perm", Shape{0, 2, 1, 3, 4}}});
  model.node("Reshape", {"t", "whole"}, {"s"});
  conv(model, rng, "s", "b", {12, 1, 3, 3}, 12);
  conv(model, rng, "b", "y", {5, 12, 1, 1}).output("y");
  EXPECT_EQ(names(run_pass(model.graph(), with_eight_lanes, {x})),
            (Types{"node_a", "node_r", "node_b", "node_y"}));
}

TEST(groups_inner, leaves_groups_that_fill_half_a_vector_and_few_groups) {
  Rng rng(2);
  const Tensor x = random_tensor({1, 6, 5, 7}, rng);
  const auto done = [&](int64_t groups, int64_t channels, Status (*pass)(Graph&)) {
    const Graph graph = run_pass(bottleneck(rng, groups, channels, channels).graph(), pass, {x});
    return count(graph, "hone.ConvGroupsInner") == 1;
  };
  EXPECT_TRUE(done(8, 4, with_eight_lanes));
  EXPECT_FALSE(done(8, 5, with_eight_lanes));
  EXPECT_TRUE(done(8, 8, with_sixteen_lanes));
  EXPECT_FALSE(done(8, 9, with_sixteen_lanes));
  EXPECT_FALSE(done(7, 4, with_sixteen_lanes));
  EXPECT_FALSE(done(8, 1, with_eight_lanes)) << "depthwise";
}

// More than a quarter of a vector: only where nothing is left of the shuffles.
TEST(groups_inner, of_half_a_vector_needs_convolutions_around) {
  Rng rng(7);
  const auto done = [&](int64_t channels, bool before, bool after) {
    TestModel model;
    const int64_t all = 8 * channels;
    model.input("x", {1, before ? 6 : all, 5, 5});
    if (before) conv(model, rng, "x", "a", {all, 6, 1, 1});
    conv(model, rng, before ? "a" : "x", "b", {all, channels, 3, 3}, 8).node("Relu", {"b"}, {"r"});
    if (after) conv(model, rng, "r", "y", {5, all, 1, 1});
    const Graph graph = run_pass(model.output(after ? "y" : "r").graph(), with_eight_lanes,
                                 {random_tensor({1, before ? 6 : all, 5, 5}, rng)});
    return count(graph, "hone.ConvGroupsInner") == 1;
  };
  EXPECT_TRUE(done(4, true, true));
  EXPECT_FALSE(done(4, false, true));
  EXPECT_FALSE(done(4, true, false));
  EXPECT_TRUE(done(2, false, false));
}

// Where a neighbour reads other channels, too, or is no convolution, the shuffle stays, behind what
// works channel by channel.
TEST(groups_inner, shuffles_that_nothing_takes_stay_last) {
  Rng rng(3);
  TestModel model;
  model.input("x", {2, 16, 4, 3}).constant("s", random_tensor({16, 1, 1}, rng));
  model.constant("half", random_tensor({1}, rng)).constant("row", random_tensor({3}, rng));
  conv(model, rng, "x", "b", {16, 2, 3, 3}, 8).node("Mul", {"b", "s"}, {"m"});
  model.node("Add", {"half", "m"}, {"h"}).node("Sub", {"row", "h"}, {"r"});
  conv(model, rng, "r", "d", {16, 1, 3, 3}, 16).node("Relu", {"d"}, {"y"}).output("y");
  const Graph graph =
      run_pass(model.graph(), with_eight_lanes, {random_tensor({2, 16, 4, 3}, rng)});
  EXPECT_EQ(types(graph), (Types{"hone.ShuffleChannels", "hone.ConvGroupsInner", "Mul", "Add",
                                 "Sub", "Conv", "Relu", "hone.ShuffleChannels"}));
}

// Two grouped convolutions behind each other: there is one shuffle before both and one behind.
TEST(groups_inner, there_and_back_is_nothing) {
  Rng rng(9);
  for (const bool others : {false, true}) {
    TestModel model;
    model.input("x", {1, 16, 5, 4}).constant("s", random_tensor({1, 16, 1, 1}, rng));
    conv(model, rng, "x", "a", {16, 2, 3, 3}, 8).node("Mul", {"s", "a"}, {"m"});
    conv(model, rng, "m", "y", {16, 2, 1, 1}, 8).output("y");
    if (others) model.output("a");
    const Graph graph =
        run_pass(model.graph(), with_eight_lanes, {random_tensor({1, 16, 5, 4}, rng)});
    EXPECT_EQ(count(graph, "hone.ConvGroupsInner"), 2);
    EXPECT_EQ(count(graph, "hone.ShuffleChannels"), others ? 3 : 2) << others;
  }
}

TEST(groups_inner, of_a_value_that_others_read_is_shuffled_once_more) {
  Rng rng(4);
  TestModel model;
  model.input("x", {1, 6, 5, 5});
  conv(model, rng, "x", "a", {16, 6, 1, 1});
  conv(model, rng, "a", "b", {16, 2, 3, 3}, 8).node("Add", {"a", "b"}, {"y"}).output("y");
  const Graph graph = run_pass(model.graph(), with_eight_lanes, {random_tensor({1, 6, 5, 5}, rng)});
  EXPECT_EQ(types(graph), (Types{"Conv", "hone.ShuffleChannels", "hone.ConvGroupsInner",
                                 "hone.ShuffleChannels", "Add"}));
}

// Makes a shuffle as in ShuffleNet: a reshape, a transpose, a reshape.
TestModel shuffle(Rng& rng, const Shape& perm, bool convolution_behind) {
  TestModel model;
  model.input("x", {1, 6, 5, 5}).constant("parts", ints({1, 3, 4, 5, 5}));
  model.constant("whole", ints({1, 12, 5, 5}));
  conv(model, rng, "x", "a", {12, 2, 1, 1}, 3).node("Reshape", {"a", "parts"}, {"p"});
  model.node("Transpose", {"p"}, {"t"}, {{"perm", perm}}).node("Reshape", {"t", "whole"}, {"s"});
  if (!convolution_behind) return std::move(model.node("Relu", {"s"}, {"y"}).output("y"));
  return std::move(conv(model, rng, "s", "y", {5, 12, 1, 1}).output("y"));
}

TEST(groups_inner, the_shuffles_of_models_are_found) {
  Rng rng(5);
  const std::vector<Tensor> x = {random_tensor({1, 6, 5, 5}, rng)};
  const Shape swapped = {0, 2, 1, 3, 4};
  EXPECT_EQ(types(run_pass(shuffle(rng, swapped, true).graph(), with_eight_lanes, x)),
            (Types{"Conv", "Conv"}));
  EXPECT_EQ(types(run_pass(shuffle(rng, swapped, false).graph(), with_eight_lanes, x)),
            (Types{"Conv", "Relu", "hone.ShuffleChannels"}));
  EXPECT_EQ(types(run_pass(shuffle(rng, {0, 1, 2, 4, 3}, true).graph(), with_eight_lanes, x)),
            (Types{"Conv", "Reshape", "Transpose", "Reshape", "Conv"}));
}

TEST(groups_inner, takes_every_rank_strides_and_dilations) {
  Rng rng(6);
  for (const size_t spatial : {1, 2, 3}) {
    Shape data = {1, 16}, weight = {16, 2};
    for (size_t d = 0; d < spatial; ++d) data.push_back(6), weight.push_back(3);
    TestModel model;
    model.input("x", data).constant("w", random_tensor(weight, rng));
    model.node("Conv", {"x", "w"}, {"y"},
               {{"group", int64_t{8}},
                {"strides", Shape(spatial, 2)},
                {"dilations", Shape(spatial, 2)},
                {"auto_pad", std::string("SAME_UPPER")}});
    const Graph graph =
        run_pass(model.output("y").graph(), with_eight_lanes, {random_tensor(data, rng)});
    EXPECT_EQ(count(graph, "hone.ConvGroupsInner"), 1) << spatial;
  }
}

}  // namespace
}  // namespace hone::graph
