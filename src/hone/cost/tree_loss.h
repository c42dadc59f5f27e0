// cost/tree_loss.h - what boosted trees are fitted to: gradients and second derivatives of a loss
// in the predictions so far.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hone/cost/boosting.h"

namespace hone::cost {

class TreeLoss {
 public:
  // `rows` outlives it and has at least one row; `options` are copied.
  TreeLoss(const TrainingRows& rows, const BoostOptions& options);
  // Of the loss for the predictions of each row before tree number `tree`, on which the pairs that
  // are drawn depend: the same number draws the same pairs.
  void find(std::span<const float> predicted, int tree, std::span<float> gradient,
            std::span<float> hessian) const;

 private:
  void add_squares(std::span<const float> predicted, double centring, double scale,
                   std::span<float> gradient, std::span<float> hessian) const;
  void add_pairs(std::span<const float> predicted, int tree, std::span<float> gradient,
                 std::span<float> hessian) const;

  const TrainingRows& rows_;
  BoostOptions options_;
  std::vector<size_t> order_;  // of the rows, by group
  std::vector<size_t> first_;  // of each group in `order_`, and behind the last one
};

}  // namespace hone::cost
