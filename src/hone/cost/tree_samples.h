// cost/tree_samples.h - measured candidates as rows to which trees are fitted: while tuning
// (gbdt_model.cc) and in the laboratory (learn/train_trees.h).
#pragma once

#include "hone/cost/boosting.h"
#include "hone/cost/candidate_features.h"

namespace hone::cost {

struct TreeSample {
  std::vector<float> features;
  double log_factor;  // log(measured / base), which the trees predict
  double seconds;     // measured time
  uint64_t task;      // task within which times are compared
};
[[nodiscard]] TreeSample make_tree_sample(const Query& query, double seconds, FeatureSet set);

// Returns the rows of the samples; the faster a sample is within its task, the more it weighs. The
// trees are to correct what `known` predicts, of which the share `trust` counts.
[[nodiscard]] TrainingRows training_rows(std::span<const TreeSample> samples,
                                         const Trees& known = {}, double trust = 1);

// The options of a fit to few measurements: few trees with small changes.
inline constexpr BoostOptions kFewTrees = {.rounds = 30,
                                           .depth = 5,
                                           .leaves = 0,
                                           .learning_rate = 0.12,
                                           .feature_share = 1,
                                           .pairs = 0,
                                           .min_leaf_weight = 4,
                                           .centring = 0.9};

}  // namespace hone::cost
