// cost/boosting.h - fits a sum of regression trees by gradient boosting. XGBoost or LightGBM, which
// is loaded at the first fit, finds the trees for gradients that we compute (cost/tree_loss.h).
// Fitting is deterministic: it uses one thread, and the features that a tree may use, and the pairs
// of rows that it is fitted to, depend on its number alone.
#pragma once

#include <string>
#include <string_view>

#include "hone/cost/trees.h"

namespace hone::cost {

// Rows and the values that the trees of each row should add up to, up to a constant of its group,
// as a model is asked which candidate of a task is faster rather than how fast the task is.
struct TrainingRows {
  int width = 0;                // number of features in a row
  std::vector<float> features;  // rows * width values
  std::vector<float> target;
  std::vector<float> known;  // log of the seconds that are predicted for a row without the trees
  std::vector<float> weight;
  std::vector<int> group;  // task, from 0 to groups - 1
  [[nodiscard]] size_t rows() const { return target.size(); }
};

enum class TreeLibrary : uint8_t { kXgboost, kLightgbm };
[[nodiscard]] Result<TreeLibrary> parse_tree_library(std::string_view name);
[[nodiscard]] std::vector<std::string> tree_library_names();

struct BoostOptions {
  int rounds = 1200;
  int depth = 12;  // most levels of a tree
  // Most leaves of a tree, those with the largest gain; 0: as many as its levels allow.
  int leaves = 128;
  double learning_rate = 0.05;
  double feature_share = 0.5;  // share of the features that a tree may use, drawn anew for each
  // Pairs per row to whose order a tree is fitted; 0: trees are fitted to values only.
  int pairs = 12;
  int value_trees =
      100;  // if there are pairs: number of complete trees before them that are fitted to values
  // Smallest sum of the loss' second derivatives in a leaf; that is the sum of weights without
  // pairs, and some six times as much with them.
  double min_leaf_weight = 30;
  double min_gain = 0;    // smallest decrease of the loss by a split
  double centring = 0.9;  // share of a group's mean error that is not penalised
  TreeLibrary library = TreeLibrary::kXgboost;
};

// Parses "trees=300,levels=6" and changes the options that it names. boost_option_help() has a line
// for each name.
[[nodiscard]] Result<BoostOptions> parse_boost_options(std::string_view text, BoostOptions options);
[[nodiscard]] std::vector<std::string> boost_option_help();

// Returns ok if the library can be loaded (and Hone was built with it), else what is missing.
[[nodiscard]] Status boosting_status(TreeLibrary library = TreeLibrary::kXgboost);
[[nodiscard]] Result<Trees> boost(const TrainingRows& rows, const BoostOptions& options);

}  // namespace hone::cost
