// cost/tree_loss.h - the loss that boosted trees are fitted to: its gradients and second
// derivatives with respect to the predictions so far.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hone/cost/boosting.h"

namespace hone::cost {

class TreeLoss {
 public:
  // `rows` must outlive it and have at least one row; `options` are copied.
  TreeLoss(const TrainingRows& rows, const BoostOptions& options);
  // Computes both for the predictions of each row before tree number `tree`. The pairs that are
  // drawn depend on that number alone.
  void find(std::span<const float> predicted, int tree, std::span<float> gradient,
            std::span<float> hessian) const;

 private:
  void add_squares(std::span<const float> predicted, double centring, double scale,
                   std::span<float> gradient, std::span<float> hessian) const;
  void add_pairs(std::span<const float> predicted, int tree, std::span<float> gradient,
                 std::span<float> hessian) const;

  const TrainingRows& rows_;
  BoostOptions options_;
  std::vector<size_t> order_;  // rows ordered by group
  std::vector<size_t> first_;  // index in `order_` of each group's first row, followed by the end
};

}  // namespace hone::cost
