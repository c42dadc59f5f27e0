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

using Matrix = std::vector<std::vector<double>>;

// Returns a^-1 b by elimination with pivots.
Matrix solve(Matrix a, Matrix b) {
  const size_t n = a.size();
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    for (size_t r = c + 1; r < n; ++r) {
      if (std::abs(a[r][c]) > std::abs(a[pivot][c])) pivot = r;
    }
    std::swap(a[c], a[pivot]), std::swap(b[c], b[pivot]);
    for (size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double factor = a[r][c] / a[c][c];
      for (size_t k = 0; k < n; ++k) a[r][k] -= factor * a[c][k];
      for (size_t k = 0; k < b[r].size(); ++k) b[r][k] -= factor * b[c][k];
    }
  }
  for (size_t r = 0; r < n; ++r) {
    for (double& x : b[r]) x /= a[r][r];
  }
  return b;
}

// Samples of a process and what the formulas say of other rows, with dense matrices: the means
// k (K + noise)^-1 y and the covariances of two rows k' - k (K + noise)^-1 k'^T.
struct Dense {
  std::vector<std::vector<float>> samples, rows;
  std::vector<double> values, mean;
  Matrix covariance;
  Dense(std::vector<std::vector<float>> of, double noise, size_t count, Rng& rng)
      : rows(std::move(of)), mean(rows.size()), covariance(rows.size()) {
    for (size_t i = 0; i < count; ++i)
      samples.push_back(random_row(rng)), values.push_back(rng.normal());
    Matrix k(count), right(count);
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < count; ++j)
        k[i].push_back(kernel(samples[i], samples[j]) + (i == j ? noise : 0));
      for (const std::vector<float>& row : rows) right[i].push_back(kernel(samples[i], row));
      right[i].push_back(values[i]);
    }
    const Matrix solved = solve(std::move(k), right);
    for (size_t a = 0; a < rows.size(); ++a) {
      for (size_t i = 0; i < count; ++i) mean[a] += right[i][a] * solved[i][rows.size()];
      for (size_t b = 0; b < rows.size(); ++b) {
        covariance[a].push_back(kernel(rows[a], rows[b]));
        for (size_t i = 0; i < count; ++i) covariance[a][b] -= right[i][a] * solved[i][b];
      }
    }
  }
};

TEST(gaussian_process, the_joint_posterior_is_that_of_dense_matrices) {
  constexpr double kNoise = 0.01;
  Rng rng(9);
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < 5; ++i) rows.push_back(random_row(rng));
  const Dense dense(rows, kNoise, 7, rng);
  GaussianProcess process(kernel, kNoise);
  for (size_t i = 0; i < dense.samples.size(); ++i) process.add(dense.samples[i], dense.values[i]);
  const GaussianProcess::Joint joint = process.joint(rows);
  double most = 0;  // of what rows have in common
  for (size_t a = 0; a < rows.size(); ++a) {
    EXPECT_NEAR(joint.mean[a], dense.mean[a], 1e-9) << a;
    for (size_t b = 0; b <= a; ++b) {
      double covariance = 0;
      for (size_t k = 0; k <= b; ++k) covariance += joint.root[a][k] * joint.root[b][k];
      EXPECT_NEAR(covariance, dense.covariance[a][b], 1e-9) << a << " " << b;
      if (a != b) most = std::max(most, std::abs(dense.covariance[a][b]));
    }
  }
  EXPECT_GT(most, 0.01);
}

TEST(gaussian_process, joint_draws_have_the_posteriors_means_and_covariances) {
  // The first two rows are near each other and far from the third.
  const std::vector<std::vector<float>> rows = {{0.3F, 0.4F}, {0.6F, 0.1F}, {1.4F, 1.3F}};
  Rng rng(5);
  const Dense dense(rows, 0.01, 6, rng);
  GaussianProcess process(kernel, 0.01);
  for (size_t i = 0; i < dense.samples.size(); ++i) process.add(dense.samples[i], dense.values[i]);
  const GaussianProcess::Joint joint = process.joint(rows);
  constexpr int kDraws = 20'000;
  std::vector<double> mean(3);
  Matrix product(3, std::vector<double>(3));
  for (int i = 0; i < kDraws; ++i) {
    std::vector<double> normals(3);
    for (double& normal : normals) normal = rng.normal();
    const std::vector<double> values = joint.draw(normals);
    for (size_t a = 0; a < 3; ++a) {
      mean[a] += values[a] / kDraws;
      for (size_t b = 0; b < 3; ++b) product[a][b] += values[a] * values[b] / kDraws;
    }
  }
  for (size_t a = 0; a < 3; ++a) {
    EXPECT_NEAR(mean[a], dense.mean[a], 0.02) << a;
    for (size_t b = 0; b < 3; ++b)
      EXPECT_NEAR(product[a][b] - mean[a] * mean[b], dense.covariance[a][b], 0.02) << a << " " << b;
  }
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
