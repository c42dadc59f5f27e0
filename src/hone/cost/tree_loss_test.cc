#include "hone/cost/tree_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace hone::cost {
namespace {

constexpr BoostOptions kSquares = {.pairs = 0, .centring = 0.9}, kPairs = {.value_trees = 0};

struct Derivatives {
  std::vector<float> gradient, hessian;
};

Derivatives derivatives(const TrainingRows& rows, const BoostOptions& options,
                        const std::vector<float>& predicted, int tree = 0) {
  Derivatives found{std::vector<float>(rows.rows(), 7), std::vector<float>(rows.rows(), 7)};
  TreeLoss(rows, options).find(predicted, tree, found.gradient, found.hessian);
  return found;
}

// One feature, which nobody looks at; of one group.
TrainingRows rows_of(std::vector<float> target, std::vector<float> known) {
  TrainingRows rows;
  rows.width = 1;
  rows.features.resize(target.size());
  rows.weight.assign(target.size(), 1);
  rows.group.assign(target.size(), 0);
  rows.target = std::move(target);
  rows.known = std::move(known);
  return rows;
}

TEST(tree_loss, squares_forgive_most_of_a_groups_mean_error) {
  TrainingRows rows = rows_of({0, 0, 0}, {0, 0, 0});
  rows.group = {1, 0, 1};
  rows.weight = {1, 2, 3};
  const Derivatives found = derivatives(rows, kSquares, {1, 5, 2});
  const double mean = (1 * 1 + 3 * 2) / 4.0;
  EXPECT_NEAR(found.gradient[0], 1 * (1 - 0.9 * mean), 1e-6);
  EXPECT_NEAR(found.gradient[2], 3 * (2 - 0.9 * mean), 1e-6);
  EXPECT_NEAR(found.gradient[1], 2 * (5 - 0.9 * 5), 1e-6);
  EXPECT_EQ(found.hessian, rows.weight);
}

TEST(tree_loss, the_first_trees_are_fitted_to_whole_values) {
  const TrainingRows rows = rows_of({0, 0}, {0, 0});
  const Derivatives first = derivatives(rows, {.value_trees = 5}, {1, 3}, 4);
  EXPECT_EQ(first.gradient, (std::vector<float>{6, 18}));
  EXPECT_EQ(first.hessian, (std::vector<float>{6, 6})) << "a step of as much";
  // Then nine tenths of what both have in common are forgiven.
  const Derivatives later = derivatives(rows, {.value_trees = 5}, {2, 2}, 5);
  EXPECT_NEAR(later.gradient[0], 0.2, 1e-6);
}

TEST(tree_loss, pairs_move_apart_what_is_in_the_wrong_order) {
  // By what is known the first is faster, by the measurement the second: a difference of 0.5.
  const TrainingRows rows = rows_of({1.5, 0}, {0, 1});
  const BoostOptions options = {.pairs = 400, .value_trees = 0};
  const Derivatives wrong = derivatives(rows, options, {0, 0});
  EXPECT_LT(wrong.gradient[0], -1) << "the first is to be predicted slower";
  EXPECT_GT(wrong.gradient[1], 1);
  // With predictions as measured only the loss of the pair is left, small and of equal parts.
  const Derivatives right = derivatives(rows, options, {1.5, 0});
  EXPECT_NEAR(right.gradient[0], -right.gradient[1], 1e-6);
  EXPECT_LT(right.gradient[0], 0);
  EXPECT_GT(right.gradient[0], -0.1);
  // Half of the partners that a row draws are itself.
  const double slope = 10 / (1 + std::exp(10 * 0.5));
  EXPECT_NEAR(right.gradient[0], -0.5 * slope, 0.05 * slope);
}

TEST(tree_loss, times_that_hardly_differ_and_other_groups_have_no_order) {
  TrainingRows rows = rows_of({0, 0.03F, 5}, {0, 0, 0});
  rows.group = {0, 0, 1};
  const Derivatives found = derivatives(rows, kPairs, rows.target);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found.gradient[i], 0);
    EXPECT_EQ(found.hessian[i], 1) << "of the squares alone";
  }
}

TEST(tree_loss, a_trees_number_decides_its_pairs) {
  std::vector<float> target(40);
  std::iota(target.begin(), target.end(), 0.0F);
  const TrainingRows rows = rows_of(target, std::vector<float>(40));
  const std::vector<float> none(40);
  EXPECT_EQ(derivatives(rows, kPairs, none, 3).gradient,
            derivatives(rows, kPairs, none, 3).gradient);
  EXPECT_NE(derivatives(rows, kPairs, none, 3).gradient,
            derivatives(rows, kPairs, none, 4).gradient);
}

}  // namespace
}  // namespace hone::cost
