#include "hone/search/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/assert.h"

namespace hone::search {
namespace {

constexpr double kTiny = 1e-12;

// Returns a value less the dot product of two vectors; the longer one is cut.
double less_dot(double value, std::span<const double> a, std::span<const double> b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) value -= a[i] * b[i];
  return value;
}

}  // namespace

void GaussianProcess::follow(Followed& followed) const {
  std::vector<double>& x = followed.whitened;
  x.reserve(rows_.size());
  if (x.empty()) followed.posterior = {0, kernel_(followed.row, followed.row)};
  for (size_t i = x.size(); i < rows_.size(); ++i) {
    const double rest = less_dot(kernel_(followed.row, rows_[i]), cholesky_[i], x);
    x.push_back(rest / cholesky_[i][i]);
    followed.posterior.mean += x[i] * solved_[i];
    followed.posterior.variance = std::max(followed.posterior.variance - x[i] * x[i], 0.0);
  }
}

void GaussianProcess::add(std::span<const float> row, double value) {
  Followed followed = {{row.begin(), row.end()}};
  follow(followed);
  std::vector<double>& factor = followed.whitened;
  const double left = less_dot(kernel_(row, row) + noise_, factor, factor);
  solved_.push_back(less_dot(value, factor, solved_));
  factor.push_back(std::sqrt(std::max(left, kTiny)));
  solved_.back() /= factor.back();
  cholesky_.push_back(std::move(factor));
  rows_.push_back(std::move(followed.row));
}

GaussianProcess::Posterior GaussianProcess::at(std::span<const float> row) const {
  Followed followed = {{row.begin(), row.end()}};
  follow(followed);
  return followed.posterior;
}

GaussianProcess::Joint GaussianProcess::joint(std::span<const std::vector<float>> rows) const {
  Joint joint;
  std::vector<Followed> all;
  for (size_t i = 0; i < rows.size(); ++i) {
    follow(all.emplace_back(Followed{rows[i]}));
    std::vector<double> line(i + 1);
    for (size_t j = 0; j <= i; ++j) {
      const double covariance =
          less_dot(kernel_(rows[i], rows[j]), all[i].whitened, all[j].whitened);
      const double rest =
          less_dot(covariance, std::span(line).first(j), j < i ? joint.root[j] : line);
      line[j] = i == j ? std::sqrt(std::max(rest, kTiny)) : rest / joint.root[j][j];
    }
    joint.root.push_back(std::move(line));
    joint.mean.push_back(all[i].posterior.mean);
  }
  return joint;
}

std::vector<double> GaussianProcess::Joint::draw(std::span<const double> normals) const {
  HONE_ASSERT(normals.size() == mean.size(), "one normal number for each row");
  std::vector<double> values = mean;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::inner_product(root[i].begin(), root[i].end(), normals.begin(), values[i]);
  return values;
}

double GaussianProcess::log_likelihood() const {
  double sum = 0;
  for (size_t i = 0; i < cholesky_.size(); ++i)
    sum -= 0.5 * solved_[i] * solved_[i] + std::log(cholesky_[i][i]);
  return sum;
}

}  // namespace hone::search
