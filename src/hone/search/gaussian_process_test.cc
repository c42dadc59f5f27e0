#include "hone/search/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/rng.h"

namespace hone::search {
namespace {

double kernel(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::exp(-sum * 2);
}

std::vector<float> random_row(Rng& rng) {
  return {static_cast<float>(rng.uniform()), static_cast<float>(rng.uniform())};
}

// With one and two samples the posterior has closed forms.
TEST(gaussian_process, posterior_is_that_of_the_formula) {
  const std::vector<float> a = {0.1F, 0.2F}, b = {0.4F, 0.9F}, x = {0.5F, 0.5F};
  GaussianProcess process(kernel, 0.1);
  EXPECT_EQ(process.at(x).mean, 0);
  EXPECT_NEAR(process.at(x).variance, 1, 1e-12);
  process.add(a, 2);
  const double xa = kernel(x, a), xb = kernel(x, b), ab = kernel(a, b);
  EXPECT_NEAR(process.at(x).mean, xa / 1.1 * 2, 1e-12);
  EXPECT_NEAR(process.at(x).variance, 1 - xa * xa / 1.1, 1e-12);
  EXPECT_NEAR(process.log_likelihood(), -4 / 1.1 / 2 - std::log(1.1) / 2, 1e-12);
  process.add(b, -1);
  const double det = 1.1 * 1.1 - ab * ab;
  const double wa = (1.1 * 2 - ab * -1) / det, wb = (-ab * 2 + 1.1 * -1) / det;
  EXPECT_NEAR(process.at(x).mean, xa * wa + xb * wb, 1e-12);
  EXPECT_NEAR(process.at(x).variance, 1 - (1.1 * xa * xa - 2 * ab * xa * xb + 1.1 * xb * xb) / det,
              1e-12);
}

TEST(gaussian_process, a_followed_row_has_the_posterior_that_is_made_at_once) {
  Rng rng(3);
  GaussianProcess process(kernel, 0.01);
  GaussianProcess::Followed followed = {random_row(rng)};
  for (int i = 0; i < 20; ++i) {
    process.add(random_row(rng), rng.normal());
    if (i % 3 == 0) process.follow(followed);
  }
  process.follow(followed);
  EXPECT_NEAR(followed.posterior.mean, process.at(followed.row).mean, 1e-9);
  EXPECT_NEAR(followed.posterior.variance, process.at(followed.row).variance, 1e-9);
  EXPECT_EQ(process.size(), 20U);
}

TEST(gaussian_process, joint_draws_have_the_posteriors_means_and_covariances) {
  Rng rng(5);
  GaussianProcess process(kernel, 0.01);
  for (int i = 0; i < 6; ++i) process.add(random_row(rng), rng.normal());
  const std::vector<std::vector<float>> rows = {random_row(rng), random_row(rng), random_row(rng)};
  const GaussianProcess::Joint joint = process.joint(rows);
  constexpr int kDraws = 20'000;
  std::vector<double> mean(3), square(3);
  double product = 0;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<double> normals(3);
    for (double& normal : normals) normal = rng.normal();
    const std::vector<double> values = joint.draw(normals);
    for (size_t r = 0; r < 3; ++r)
      mean[r] += values[r] / kDraws, square[r] += values[r] * values[r] / kDraws;
    product += values[0] * values[1] / kDraws;
  }
  for (size_t r = 0; r < 3; ++r) {
    const GaussianProcess::Posterior posterior = process.at(rows[r]);
    EXPECT_NEAR(mean[r], posterior.mean, 0.02) << r;
    EXPECT_NEAR(square[r] - mean[r] * mean[r], posterior.variance, 0.02) << r;
  }
  const double covariance = joint.root[0][0] * joint.root[1][0];
  EXPECT_NEAR(product - mean[0] * mean[1], covariance, 0.02);
}

// Rows that occur twice make a covariance that is almost singular.
TEST(gaussian_process, repeated_rows_are_no_fault) {
  GaussianProcess process(kernel, 0);
  for (int i = 0; i < 4; ++i) process.add(std::vector<float>{0.5F, 0.5F}, 1);
  EXPECT_NEAR(process.at(std::vector<float>{0.5F, 0.5F}).mean, 1, 1e-6);
  EXPECT_TRUE(std::isfinite(process.log_likelihood()));
}

}  // namespace
}  // namespace hone::search
