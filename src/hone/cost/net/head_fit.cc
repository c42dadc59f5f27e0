#include "hone/cost/net/head_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "hone/base/assert.h"

namespace hone::cost::net {
namespace {

constexpr int kSteps = 32;  // steps of conjugate gradients
// Penalty of a weight's square, for inputs of deviation 1, as so many samples: where all inputs say
// the same, as many samples move the score half the way to what was measured.
constexpr double kPrior = 16;
constexpr double kSlowest =
    0.05;  // the least weight of a sample; else its task's best time / its time

// Samples relative to the means of their tasks: row-major inputs of deviation 1, what is wrong of
// each, and its weight: 1 in the mean.
struct Rows {
  size_t width = 0;
  std::vector<double> x, error, weight;
  std::vector<double> per_input;  // 1 / deviation; 0 where an input does not vary
};

struct TaskMean {
  double best = INFINITY;
  double weight = 0, error = 0;
  std::vector<double> head;
};

Rows make_rows(std::span<const HeadSample> samples, double scale) {
  Rows rows;
  rows.width = samples[0].head.size();
  std::map<uint64_t, TaskMean> tasks;
  for (const HeadSample& sample : samples) {
    TaskMean& task = tasks[sample.task];
    task.best = std::min(task.best, sample.seconds);
    task.head.resize(rows.width);
  }
  for (const HeadSample& sample : samples) {
    TaskMean& task = tasks[sample.task];
    const double weight = std::max(task.best / sample.seconds, kSlowest);
    // By how much the score is too low.
    rows.error.push_back(-std::log(sample.seconds) / scale - sample.score);
    rows.weight.push_back(weight);
    task.weight += weight;
    task.error += weight * rows.error.back();
    for (size_t k = 0; k < rows.width; ++k)
      task.head[k] += weight * static_cast<double>(sample.head[k]);
  }
  std::vector<double> variance(rows.width);
  double total = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const TaskMean& task = tasks[samples[i].task];
    rows.error[i] -= task.error / task.weight;
    total += rows.weight[i];
    for (size_t k = 0; k < rows.width; ++k) {
      rows.x.push_back(samples[i].head[k] - task.head[k] / task.weight);
      variance[k] += rows.weight[i] * rows.x.back() * rows.x.back();
    }
  }
  for (size_t k = 0; k < rows.width; ++k) {
    const double deviation = std::sqrt(variance[k] / total);
    rows.per_input.push_back(deviation > 1e-6 ? 1 / deviation : 0);
  }
  for (size_t i = 0; i < rows.x.size(); ++i) rows.x[i] *= rows.per_input[i % rows.width];
  for (double& weight : rows.weight) weight *= static_cast<double>(samples.size()) / total;
  return rows;
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// (X' W X + penalty) v
std::vector<double> apply(const Rows& rows, double penalty, const std::vector<double>& v) {
  std::vector<double> result(v.size());
  for (size_t k = 0; k < v.size(); ++k) result[k] = penalty * v[k];
  for (size_t i = 0; i < rows.error.size(); ++i) {
    const std::span<const double> row(&rows.x[i * rows.width], rows.width);
    const double said = rows.weight[i] * dot(row, v);
    for (size_t k = 0; k < v.size(); ++k) result[k] += said * row[k];
  }
  return result;
}

std::vector<double> solve(const Rows& rows, double penalty) {
  std::vector<double> solution(rows.width), residual(rows.width);
  for (size_t i = 0; i < rows.error.size(); ++i) {
    for (size_t k = 0; k < rows.width; ++k)
      residual[k] += rows.weight[i] * rows.error[i] * rows.x[i * rows.width + k];
  }
  std::vector<double> direction = residual;
  double square = dot(residual, residual);
  const double enough = 1e-12 * square;
  for (int step = 0; step < kSteps && square > enough; ++step) {
    const std::vector<double> applied = apply(rows, penalty, direction);
    const double length = square / dot(direction, applied);
    for (size_t k = 0; k < rows.width; ++k) {
      solution[k] += length * direction[k];
      residual[k] -= length * applied[k];
    }
    const double next = dot(residual, residual);
    for (size_t k = 0; k < rows.width; ++k)
      direction[k] = residual[k] + next / square * direction[k];
    square = next;
  }
  return solution;
}

}  // namespace

void HeadFit::add(HeadSample sample) {
  HONE_ASSERT(samples_.empty() || samples_[0].head.size() == sample.head.size(),
              "samples of two nets");
  if (samples_.size() == kMaximum) samples_.erase(samples_.begin());
  samples_.push_back(std::move(sample));
}

void HeadFit::fit() {
  if (samples_.empty()) return;
  const Rows rows = make_rows(samples_, scale_);
  weights_ = solve(rows, kPrior * static_cast<double>(rows.width));
  for (size_t k = 0; k < rows.width; ++k) weights_[k] *= rows.per_input[k];
}

double HeadFit::change(std::span<const float> head) const {
  double sum = 0;
  for (size_t k = 0; k < weights_.size(); ++k) sum += weights_[k] * static_cast<double>(head[k]);
  return sum;
}

}  // namespace hone::cost::net
