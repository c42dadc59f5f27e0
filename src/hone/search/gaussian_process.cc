#include "hone/search/gaussian_process.h"

#include <algorithm>
#include <cmath>

#include "hone/base/assert.h"

namespace hone::search {
namespace {

constexpr double kTiny = 1e-12;

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void GaussianProcess::follow(Followed& followed) const {
  std::vector<double>& x = followed.whitened;
  if (x.empty()) followed.posterior = {0, kernel_(followed.row, followed.row)};
  for (size_t i = x.size(); i < rows_.size(); ++i) {
    const double rest = kernel_(followed.row, rows_[i]) - dot(cholesky_[i], x);
    x.push_back(rest / cholesky_[i][i]);
    followed.posterior.mean += x[i] * solved_[i];
    followed.posterior.variance = std::max(followed.posterior.variance - x[i] * x[i], 0.0);
  }
}

void GaussianProcess::add(std::span<const float> row, double value) {
  Followed followed = {{row.begin(), row.end()}};
  follow(followed);
  std::vector<double>& factor = followed.whitened;
  const double left = kernel_(row, row) + noise_ - dot(factor, factor);
  solved_.push_back(value - dot(factor, solved_));
  factor.push_back(std::sqrt(std::max(left, kTiny)));
  solved_.back() /= factor.back();
  cholesky_.push_back(std::move(factor));
  rows_.push_back(std::move(followed.row));
  values_.push_back(value);
}

void GaussianProcess::truncate(size_t count) {
  HONE_ASSERT(count <= size(), "samples can be forgotten only");
  rows_.resize(count), values_.resize(count), cholesky_.resize(count), solved_.resize(count);
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
      const double covariance = kernel_(rows[i], rows[j]) - dot(all[i].whitened, all[j].whitened);
      const double rest = covariance - dot(std::span(line).first(j), j < i ? joint.root[j] : line);
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
  for (size_t i = 0; i < values.size(); ++i) values[i] += dot(root[i], normals);
  return values;
}

double GaussianProcess::log_likelihood() const {
  double sum = -dot(solved_, solved_) / 2;
  for (size_t i = 0; i < cholesky_.size(); ++i) sum -= std::log(cholesky_[i][i]);
  return sum;
}

}  // namespace hone::search
