#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "hone/graph/passes/pass_testing.h"

namespace hone::graph {
namespace {

enum class Masks : uint8_t { kNone, kAdded, kChosen, kBoth };

// Two heads of 3 queries over 5 keys, written as exporters write it.
struct Written {
  Masks masks = Masks::kNone;
  bool divides = true;
  double masked = std::numeric_limits<float>::lowest();
  int64_t axis = -1;
  bool weights_are_used = false;
  int64_t seen_ahead = 0, seen_behind = 5;  // keys beyond a query's own number, and before it
};

TestModel attention(const Written& as) {
  Rng rng(130);
  TestModel model(17);
  model.input("x", {1, 3, 8}).input("memory", {1, 5, 8}).input("bias", {1, 1, 1, 5});
  model.constant("q.shape", ints({1, 3, 2, 4})).constant("k.shape", ints({1, 5, 2, 4}));
  model.constant("back", ints({1, 3, 8})).constant("factor", floats({}, {as.divides ? 2.f : 0.5f}));
  model.node("Reshape", {"x", "q.shape"}, {"q.heads"})
      .node("Reshape", {"memory", "k.shape"}, {"k.heads"})
      .node("Neg", {"memory"}, {"minus"})
      .node("Reshape", {"minus", "k.shape"}, {"v.heads"});
  model.node("Transpose", {"q.heads"}, {"q"}, {{"perm", Shape{0, 2, 1, 3}}})
      .node("Transpose", {"k.heads"}, {"k"}, {{"perm", Shape{0, 2, 3, 1}}})
      .node("Transpose", {"v.heads"}, {"v"}, {{"perm", Shape{0, 2, 1, 3}}});
  model.node("MatMul", {"q", "k"}, {"products"})
      .node(as.divides ? "Div" : "Mul", {"products", "factor"}, {"scores"});
  std::string last = "scores";
  if (as.masks == Masks::kChosen || as.masks == Masks::kBoth) {
    Tensor seen(DType::kBool, {1, 1, 3, 5});
    for (int64_t i = 0; i < 15; ++i) {
      const int64_t ahead = i % 5 - i / 5;
      seen.set(i, ahead <= as.seen_ahead && -ahead <= as.seen_behind ? 1 : 0);
    }
    model.constant("seen", seen)
        .constant("masked", floats({}, {static_cast<float>(as.masked)}))
        .node("Where", {"seen", last, "masked"}, {"causal"});
    last = "causal";
  }
  if (as.masks == Masks::kAdded || as.masks == Masks::kBoth) {
    model.node("Add", {"bias", last}, {"biased"});
    last = "biased";
  }
  model.node("Softmax", {last}, {"weights"}, {{"axis", as.axis}})
      .node("MatMul", {"weights", "v"}, {"sums"})
      .node("Transpose", {"sums"}, {"t"}, {{"perm", Shape{0, 2, 1, 3}}})
      .node("Reshape", {"t", "back"}, {"y"})
      .output("y");
  if (as.weights_are_used) model.output("weights");
  return model;
}

std::vector<Tensor> inputs() {
  Rng rng(131);
  return {random_tensor({1, 3, 8}, rng), random_tensor({1, 5, 8}, rng),
          random_tensor({1, 1, 1, 5}, rng)};
}

void expect_attentions(const Written& as, int64_t expected) {
  const Graph before = attention(as).graph();
  Graph graph = before;
  for (const auto pass : {remove_identities, simplify_algebra, fuse_attention}) {
    const Status status = pass(graph);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(count(graph, "hone.Attention"), expected);
  const auto wanted = run_plainly(before, inputs()), got = run_optimized(before, inputs());
  ASSERT_EQ(wanted.size(), got.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_LT(relative_error(got[i], wanted[i]), 1e-5);
}

TEST(fuse_attention, whichever_way_scores_are_scaled_and_masked) {
  expect_attentions({}, 1);
  expect_attentions({.divides = false}, 1);
  expect_attentions({.masks = Masks::kAdded}, 1);
  expect_attentions({.masks = Masks::kChosen}, 1);
  expect_attentions({.masks = Masks::kBoth}, 1);
  expect_attentions({.masks = Masks::kChosen, .masked = -std::numeric_limits<double>::infinity()},
                    1);
  expect_attentions({.masks = Masks::kChosen, .seen_ahead = 1, .seen_behind = 1}, 1);
}

// A constant triangle needs no mask; one beside values that come at run time hides keys that count
// where nothing else is seen.
TEST(fuse_attention, knows_a_causal_mask) {
  const auto node_of = [](const Written& as) {
    Graph graph = attention(as).graph();
    for (const auto pass : {remove_identities, simplify_algebra, fuse_attention})
      EXPECT_TRUE(pass(graph).ok());
    const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                    [](const Node& node) { return node.type == "hone.Attention"; });
    return found == graph.nodes.end() ? Node() : *found;
  };
  const Node causal = node_of({.masks = Masks::kChosen});
  EXPECT_EQ(causal.inputs.size(), 3U);
  EXPECT_EQ(causal.attributes.integer("causal_offset", -1), 0);
  const Node shifted = node_of({.masks = Masks::kChosen, .seen_ahead = 2});
  EXPECT_EQ(shifted.attributes.integer("causal_offset", -1), 2);
  const Node window = node_of({.masks = Masks::kChosen, .seen_behind = 1});
  EXPECT_EQ(window.inputs.size(), 4U);  // keys far behind are hidden, too
  EXPECT_EQ(window.attributes.integer("causal_offset", -1), 0);
  for (const Written& other :
       {Written{.masks = Masks::kBoth}, Written{.masks = Masks::kAdded},
        Written{.masks = Masks::kChosen, .seen_ahead = 3},      // one key of one query is hidden
        Written{.masks = Masks::kChosen, .seen_ahead = -1}}) {  // the first query sees none
    const Node node = node_of(other);
    EXPECT_EQ(node.inputs.size(), 4U);
    EXPECT_FALSE(node.attributes.has("causal_offset"));
  }
}

TEST(fuse_attention, leaves_what_only_looks_like_it) {
  expect_attentions({.masks = Masks::kChosen, .masked = -4}, 0);  // -4 counts
  expect_attentions({.axis = 2}, 0);
  expect_attentions({.weights_are_used = true}, 0);
}

// The heads lie side by side where the next product reads them.
TEST(fuse_attention, writes_its_result_without_a_copy) {
  Graph graph = attention({.masks = Masks::kAdded}).graph();
  ASSERT_TRUE(optimize(graph).ok());
  EXPECT_EQ(count(graph, "hone.Copy"), 1);  // copies the keys
}

}  // namespace
}  // namespace hone::graph
