#include "hone/learn/torch/losses.h"

#include <algorithm>
#include <cmath>

namespace hone::learn::torch_module {
namespace {

constexpr double kSlowest = 5;  // logarithm of a time relative to the task's best
// The difference of scores, as logarithms of times, at which an order is nearly certain. With it a
// net need not exaggerate differences to make the loss of pairs small.
constexpr double kSure = 0.1;

// Rows of groups side by side -> [groups, longest]; what is missing is `filling`.
at::Tensor padded(const at::Tensor& rows, const std::vector<int64_t>& sizes, double filling) {
  const int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    parts.push_back(
        at::constant_pad_nd(rows.slice(0, begin, begin + size), {0, longest - size}, filling));
    begin += size;
  }
  return at::stack(parts);
}

// Returns the change of the discounted gain if two rows of a group are swapped: [groups, n, n].
at::Tensor lambda_weights(const at::Tensor& score, const at::Tensor& speed) {
  const at::Tensor place =
      at::argsort(at::argsort(score, 1, true), 1, false).to(score.scalar_type());
  const at::Tensor discount = 1 / at::log2(place + 2);
  const at::Tensor gain = at::pow(2, speed) - 1;
  const auto differences = [](const at::Tensor& t) {
    return at::abs(t.unsqueeze(2) - t.unsqueeze(1));
  };
  return differences(discount) * differences(gain);
}

// The logistic loss of pairs in the wrong order; a group weighs as much as it has rows.
at::Tensor rank_loss(const at::Tensor& scores, const Labels& labels, bool lambda,
                     double least_ratio) {
  const at::Tensor score = padded(scores, labels.group_sizes, -1e9);
  const at::Tensor speed = padded(labels.speed, labels.group_sizes, 0);
  // faster[g, i, j]: i is faster than j by the ratio, and j is no padding.
  const at::Tensor other = speed.unsqueeze(1);
  at::Tensor faster =
      at::logical_and(speed.unsqueeze(2) >= least_ratio * other, other > 0).to(score.scalar_type());
  if (lambda) faster = faster * lambda_weights(score.detach(), speed);
  const at::Tensor difference = at::clamp(score.unsqueeze(2) - score.unsqueeze(1), -1e4, 1e4);
  const at::Tensor lost = at::softplus(-difference);
  const at::Tensor weight = faster.sum({1, 2});
  const at::Tensor means = (faster * lost).sum({1, 2}) / at::clamp_min(weight, 1e-12);
  const at::Tensor rows =
      (speed > 0).to(score.scalar_type()).sum(1) * (weight > 0).to(score.scalar_type());
  return (means * rows).sum() / at::clamp_min(rows.sum(), 1);
}

// The mean where there is a label of what `loss` sums. Elsewhere both are 0, so that neither the
// gradient nor its derivative is of what is not known.
template <typename Loss>
at::Tensor mean_of_known(const at::Tensor& said, const at::Tensor& label, const Loss& loss) {
  const at::Tensor known = at::logical_not(at::isnan(label));
  const at::Tensor nothing = at::zeros_like(label);
  return loss(at::where(known, said, nothing), at::where(known, label, nothing)) /
         at::clamp_min(known.sum(), 1);
}

at::Tensor squared_error(const at::Tensor& said, const at::Tensor& label) {
  return mean_of_known(said, label, [](const at::Tensor& a, const at::Tensor& b) {
    return at::mse_loss(a, b, at::Reduction::Sum);
  });
}

// Slower than kSlowest is all the same.
at::Tensor time_error(const at::Tensor& said, const Labels& labels) {
  const at::Tensor slower = -at::log(labels.speed);  // than the task's best
  const at::Tensor label = labels.log_time - slower + at::clamp_max(slower, kSlowest);
  return mean_of_known(said, label, [](const at::Tensor& a, const at::Tensor& b) {
    return at::smooth_l1_loss(a, b, at::Reduction::Sum);
  });
}

// Where a net has no output for the time, minus its score is taken for it.
at::Tensor multi_task(const Outputs& outputs, const Labels& labels,
                      const HoneTorchOptions& options) {
  at::Tensor loss = time_error(outputs.time.defined() ? outputs.time : -outputs.score, labels);
  if (options.bound_weight > 0 && outputs.memory_bound.defined()) {
    loss = loss + options.bound_weight * (squared_error(outputs.memory_bound, labels.memory_bound) +
                                          squared_error(outputs.core_bound, labels.core_bound));
  }
  if (options.rank_weight > 0) {
    loss = loss + options.rank_weight * kSure *
                      rank_loss(outputs.score / kSure, labels, false, options.least_ratio);
  }
  return loss;
}

}  // namespace

at::Tensor loss_of(const Outputs& outputs, const Labels& labels, const HoneTorchOptions& options) {
  switch (options.loss) {
    case kHoneTorchLambdaRank:
    case kHoneTorchPairwise:
      return rank_loss(outputs.score, labels, options.loss == kHoneTorchLambdaRank,
                       options.least_ratio);
    case kHoneTorchRmse: return at::sqrt(at::mse_loss(outputs.score, labels.speed) + 1e-12);
    case kHoneTorchMultiTask: return multi_task(outputs, labels, options);
    default: TORCH_CHECK(false, "unknown loss ", options.loss);
  }
}

}  // namespace hone::learn::torch_module
