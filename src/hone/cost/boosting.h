// cost/boosting.h - fits a sum of regression trees by gradient boosting (XGBoost's C interface; the
// library is loaded at the first fit). Deterministic: one thread, no sampling.
#pragma once

#include "hone/cost/trees.h"

namespace hone::cost {

// What each row's trees should add up to, up to a constant of its group: a model is asked which
// candidate of a task is faster, less so how fast the task is.
struct TrainingRows {
  int width = 0;                // features in a row
  std::vector<float> features;  // rows * width
  std::vector<float> target;
  std::vector<float> weight;
  std::vector<int> group;  // 0 .. groups - 1: the task
  [[nodiscard]] size_t rows() const { return target.size(); }
};

struct BoostOptions {
  int rounds = 120;
  int depth = 5;
  double learning_rate = 0.12;
  double min_leaf_weight = 5;  // sum of weights in a leaf
  double centring = 0.9;       // share of a group's mean error that is forgiven
};

// False in a build without XGBoost, or where its library cannot be loaded.
[[nodiscard]] bool boosting_available();
// An error says what is missing.
[[nodiscard]] Result<Trees> boost(const TrainingRows& rows, const BoostOptions& options);

}  // namespace hone::cost
