#include "hone/cost/tree_loss.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/assert.h"
#include "hone/base/rng.h"

namespace hone::cost {
namespace {

// Times whose logarithms differ by less have no order: two measurements of one schedule do.
constexpr double kSureDifference = 0.04;
// The factor of the logarithm of two times' ratio in the logistic loss of their order. With this
// one, predicted ratios are on average as large as measured ones (docs/user/cost_models.md).
constexpr double kPairScale = 10;
// Second derivatives of a row's pairs, in its weight, on the whole: those of values are raised as
// much, so that leaves of both kinds of trees are of as many rows.
constexpr double kBend = 6;

}  // namespace

TreeLoss::TreeLoss(const TrainingRows& rows, const BoostOptions& options)
    : rows_(rows), options_(options) {
  HONE_ASSERT(rows.rows() > 0, "a loss is of rows");
  const int groups = 1 + *std::max_element(rows.group.begin(), rows.group.end());
  first_.resize(static_cast<size_t>(groups) + 1);
  for (const int group : rows.group) ++first_[static_cast<size_t>(group) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  order_.resize(rows.rows());
  std::vector<size_t> next(first_.begin(), first_.end() - 1);
  for (size_t i = 0; i < rows.rows(); ++i) order_[next[static_cast<size_t>(rows.group[i])]++] = i;
}

// Adds the gradient of scale / 2 times the sum of weight * (error - centring * mean error of the
// group)^2, where the mean is treated as constant.
void TreeLoss::add_squares(std::span<const float> predicted, double centring, double scale,
                           std::span<float> gradient, std::span<float> hessian) const {
  for (size_t g = 0; g + 1 < first_.size(); ++g) {
    const std::span<const size_t> group(order_.data() + first_[g], first_[g + 1] - first_[g]);
    double error = 0, weight = 0;
    for (const size_t i : group) {
      error += rows_.weight[i] * (predicted[i] - rows_.target[i]);
      weight += rows_.weight[i];
    }
    const double forgiven = centring * error / std::max(weight, 1e-9);
    for (const size_t i : group) {
      const double own = predicted[i] - rows_.target[i] - forgiven;
      gradient[i] += static_cast<float>(scale * rows_.weight[i] * own);
      hessian[i] += static_cast<float>(scale * rows_.weight[i]);
    }
  }
}

// Adds the gradient of the mean over pairs of weight * log(1 + exp(-kPairScale * predicted log
// ratio)), where the ratio is that of the slower to the faster one in a group: RankNet's loss
// (Burges et al., ICML 2005). Each row draws partners.
void TreeLoss::add_pairs(std::span<const float> predicted, int tree, std::span<float> gradient,
                         std::span<float> hessian) const {
  Rng rng(static_cast<uint64_t>(tree) + 1);
  const double share = 0.5 / options_.pairs;  // each pair counts for both of its rows
  for (size_t g = 0; g + 1 < first_.size(); ++g) {
    const auto size = static_cast<int64_t>(first_[g + 1] - first_[g]);
    for (int64_t k = 0; k < size * options_.pairs; ++k) {
      const size_t i = order_[first_[g] + static_cast<size_t>(k / options_.pairs)];
      const size_t j = order_[first_[g] + static_cast<size_t>(rng.below(size))];
      const double known = rows_.known[i] - rows_.known[j];
      const double measured = rows_.target[i] - rows_.target[j] + known;
      if (std::abs(measured) < kSureDifference) continue;
      const double sign = measured > 0 ? 1 : -1;
      const double margin = kPairScale * sign * (predicted[i] - predicted[j] + known);
      const double wrong = 1 / (1 + std::exp(margin));
      const double weight = share * std::max(rows_.weight[i], rows_.weight[j]);
      const auto slope = static_cast<float>(-weight * kPairScale * sign * wrong);
      const auto bend = static_cast<float>(weight * kPairScale * kPairScale * wrong * (1 - wrong));
      gradient[i] += slope;
      gradient[j] -= slope;
      hessian[i] += bend;
      hessian[j] += bend;
    }
  }
}

void TreeLoss::find(std::span<const float> predicted, int tree, std::span<float> gradient,
                    std::span<float> hessian) const {
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  std::fill(hessian.begin(), hessian.end(), 0.0F);
  const bool pairs = options_.pairs > 0;
  const bool values = pairs && tree < options_.value_trees;
  // An order says nothing of how fast a task is, so values forgive nothing.
  add_squares(predicted, values ? 0 : options_.centring, values ? kBend : 1, gradient, hessian);
  if (pairs && !values) add_pairs(predicted, tree, gradient, hessian);
}

}  // namespace hone::cost
