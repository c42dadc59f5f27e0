#include "hone/cost/trees.h"

#include <gtest/gtest.h>

#include "hone/base/rng.h"

namespace hone::cost {
namespace {

Trees two_trees() {
  Trees trees;
  // x0 < 2 ? (x1 < -1 ? 10 : 20) : 30
  trees.add(std::vector<TreeNode>{{0, 2, 4}, {1, -1, 3}, {-1, 10, 0}, {-1, 20, 0}, {-1, 30, 0}});
  trees.add(std::vector<TreeNode>{{-1, 0.5, 0}});
  return trees;
}

double predict(const Trees& trees, std::vector<float> features) { return trees.predict(features); }

TEST(trees, add_up_their_leaves) {
  const Trees trees = two_trees();
  EXPECT_EQ(predict(trees, {1, -2}), 10.5);
  EXPECT_EQ(predict(trees, {1, -1}), 20.5);  // not below the threshold
  EXPECT_EQ(predict(trees, {2, -2}), 30.5);
  EXPECT_EQ(predict(Trees(), {1, 2}), 0);
}

TEST(trees, appended_ones_add_up) {
  Trees trees = two_trees();
  trees.append(two_trees());
  trees.append(Trees());
  EXPECT_EQ(trees.size(), 4U);
  EXPECT_EQ(predict(trees, {1, -2}), 21);
  EXPECT_EQ(trees.format(), two_trees().format() + two_trees().format());
}

// Walked side by side, trees of all sizes give what they give one by one.
TEST(trees, many_add_up_like_each_alone) {
  Rng rng(7);
  constexpr int kFeatures = 6;
  std::vector<std::vector<TreeNode>> all;
  const auto grow = [&](const auto& self, std::vector<TreeNode>& nodes, int levels) -> void {
    const size_t at = nodes.size();
    const bool leaf = levels == 0 || rng.below(4) == 0;
    nodes.push_back({-1, static_cast<float>(rng.below(64)) / 8, 0});
    if (leaf) return;
    nodes[at].feature = static_cast<int32_t>(rng.below(kFeatures));
    self(self, nodes, levels - 1);
    nodes[at].right = static_cast<int32_t>(nodes.size());
    self(self, nodes, levels - 1);
  };
  Trees together;
  for (int tree = 0; tree < 21; ++tree) {
    all.emplace_back();
    grow(grow, all.back(), tree % 7);
    together.add(all.back());
  }
  std::vector<float> rows;
  std::vector<double> sums(50);
  for (size_t i = 0; i < sums.size() * kFeatures; ++i)
    rows.push_back(static_cast<float>(rng.below(64)) / 8);
  together.predict(rows, sums);
  for (size_t row = 0; row < sums.size(); ++row) {
    const auto first = rows.begin() + static_cast<std::ptrdiff_t>(row * kFeatures);
    const std::vector<float> features(first, first + kFeatures);
    double sum = 0;
    for (const std::vector<TreeNode>& nodes : all) {
      size_t at = 0;
      while (nodes[at].feature >= 0) {
        const bool below = features[static_cast<size_t>(nodes[at].feature)] < nodes[at].value;
        at = below ? at + 1 : static_cast<size_t>(nodes[at].right);
      }
      sum += static_cast<double>(nodes[at].value);
    }
    EXPECT_EQ(predict(together, features), sum);
    EXPECT_EQ(sums[row], sum);
  }
}

TEST(trees, text_gives_the_same_back) {
  const Trees trees = two_trees();
  EXPECT_EQ(trees.format(), "0<2 1<-1 10 20 30\n0.5\n");
  const Result<Trees> back = Trees::parse(trees.format(), 2);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, trees);
}

TEST(trees, bad_text_is_refused) {
  const auto message = [](std::string_view text) {
    const Result<Trees> trees = Trees::parse(text, 2);
    return trees.ok() ? "parsed" : std::string(trees.status().message());
  };
  EXPECT_EQ(message("2<1 0 0\n"), "tree 1: split '2<1', expected a feature below 2");
  EXPECT_EQ(message("0.5\n0<1 0\n"), "tree 2: '', expected a number");
  EXPECT_EQ(message("0<1 0 nan\n"), "tree 1: 'nan', expected a number");
  EXPECT_EQ(message("0<1 0 1 2\n"), "tree 1: '2' after a whole tree");
  EXPECT_EQ(message("0.5"), "the last tree has no end of line");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "0<1 ";
  EXPECT_EQ(message(deep + "\n"), "tree 1: a tree of more than 64 levels");
}

}  // namespace
}  // namespace hone::cost
