// cost/boosting.h - fits a sum of regression trees by gradient boosting: XGBoost or LightGBM finds
// the trees for gradients that are ours (cost/tree_loss.h); the library is loaded at the first fit.
// Deterministic: one thread; which features a tree may look at, and which pairs of rows it is
// fitted to, depends on its number alone.
#pragma once

#include <string>
#include <string_view>

#include "hone/cost/trees.h"

namespace hone::cost {

// What each row's trees should add up to, up to a constant of its group: a model is asked which
// candidate of a task is faster, less so how fast the task is.
struct TrainingRows {
  int width = 0;                // features in a row
  std::vector<float> features;  // rows * width
  std::vector<float> target;
  std::vector<float> known;  // log of the seconds that a row is predicted to take without the trees
  std::vector<float> weight;
  std::vector<int> group;  // 0 .. groups - 1: the task
  [[nodiscard]] size_t rows() const { return target.size(); }
};

enum class TreeLibrary : uint8_t { kXgboost, kLightgbm };
[[nodiscard]] Result<TreeLibrary> parse_tree_library(std::string_view name);
[[nodiscard]] std::vector<std::string> tree_library_names();

struct BoostOptions {
  int rounds = 1200;
  int depth = 12;    // levels of a tree at most
  int leaves = 128;  // of a tree at most, those that gain most; 0: as many as its levels allow
  double learning_rate = 0.05;
  double feature_share = 0.5;  // of the features, drawn anew for each tree, that it may look at
  int pairs = 12;  // partners of each row whose order a tree is fitted to; 0: to values alone
  int value_trees =
      100;  // if there are pairs: so many trees before are fitted to values, whole ones
  double min_leaf_weight = 30;  // sum of the loss' second derivatives in a leaf: of weights without
                                // pairs, with them some six times as much
  double min_gain = 0;          // of the loss, by a split
  double centring = 0.9;        // share of a group's mean error that is forgiven
  TreeLibrary library = TreeLibrary::kXgboost;
};

// "trees=300,levels=6": changes what it names. boost_option_help() is a line for each name.
[[nodiscard]] Result<BoostOptions> parse_boost_options(std::string_view text, BoostOptions options);
[[nodiscard]] std::vector<std::string> boost_option_help();

// Ok if the library can be loaded (and Hone was built with it), else what is missing.
[[nodiscard]] Status boosting_status(TreeLibrary library = TreeLibrary::kXgboost);
[[nodiscard]] Result<Trees> boost(const TrainingRows& rows, const BoostOptions& options);

}  // namespace hone::cost
