#include "hone/learn/representatives.h"

#include <algorithm>
#include <limits>

#include "hone/base/rank_correlation.h"
#include "hone/cost/inputs/model_inputs.h"

namespace hone::learn {
namespace {

constexpr double kLeastGain = 1e-6;  // smallest gain of a swap; below it rounding would decide

// The medoids of a clustering, and for each point the distances to the two nearest.
class Medoids {
 public:
  Medoids(std::span<const float> distances, size_t points)
      : distances_(distances), points_(points), first_(points, kFar), second_(points, kFar) {
    nearest_.resize(points);
    chosen_.resize(points);
  }

  // The point that brings the others nearest to a medoid (PAM's BUILD).
  void add() {
    size_t best = points_;
    double least = std::numeric_limits<double>::infinity();
    for (size_t candidate = 0; candidate < points_; ++candidate) {
      if (chosen_[candidate]) continue;
      double sum = 0;
      for (size_t i = 0; i < points_; ++i) sum += std::min(first_[i], distance(candidate, i));
      if (sum < least - kLeastGain) least = sum, best = candidate;
    }
    chosen_[best] = true;
    places_.push_back(best);
    assign();
  }

  // The best exchange of a medoid for another point; false if none brings anything.
  bool swap() {
    double best_change = -kLeastGain;
    size_t best_medoid = 0, best_candidate = points_;
    // The cost of removing each medoid, before another point takes over some of its points.
    std::vector<double> leaving(places_.size());
    for (size_t i = 0; i < points_; ++i) leaving[nearest_[i]] += second_[i] - first_[i];
    std::vector<double> change(places_.size());
    for (size_t candidate = 0; candidate < points_; ++candidate) {
      if (chosen_[candidate]) continue;
      change = leaving;
      double shared = 0;
      for (size_t i = 0; i < points_; ++i) {
        const double now = distance(candidate, i);
        if (now < first_[i]) {
          shared += now - first_[i];
          change[nearest_[i]] += first_[i] - second_[i];
        } else if (now < second_[i]) {
          change[nearest_[i]] += now - second_[i];
        }
      }
      for (size_t m = 0; m < places_.size(); ++m) {
        if (change[m] + shared >= best_change - kLeastGain) continue;
        best_change = change[m] + shared, best_medoid = m, best_candidate = candidate;
      }
    }
    if (best_candidate == points_) return false;
    chosen_[places_[best_medoid]] = false;
    chosen_[best_candidate] = true;
    places_[best_medoid] = best_candidate;
    assign();
    return true;
  }

  [[nodiscard]] const std::vector<size_t>& places() const { return places_; }

 private:
  // Farther than any two points are, so that a single medoid has a second nearest.
  static constexpr double kFar = 4;

  [[nodiscard]] double distance(size_t a, size_t b) const { return distances_[a * points_ + b]; }

  void assign() {
    for (size_t i = 0; i < points_; ++i) {
      first_[i] = second_[i] = kFar;
      for (size_t m = 0; m < places_.size(); ++m) {
        const double now = distance(places_[m], i);
        if (now < first_[i])
          second_[i] = first_[i], first_[i] = now, nearest_[i] = m;
        else
          second_[i] = std::min(second_[i], now);
      }
    }
  }

  std::span<const float> distances_;
  size_t points_;
  std::vector<double> first_, second_;
  std::vector<size_t> nearest_, places_;
  std::vector<bool> chosen_;
};

}  // namespace

std::vector<size_t> k_medoids(std::span<const float> distances, size_t points, size_t count) {
  Medoids medoids(distances, points);
  for (size_t i = 0; i < std::min(count, points); ++i) medoids.add();
  while (medoids.swap()) {
  }
  return medoids.places();
}

std::vector<ListedTask> representatives(const Dataset& dataset, int count) {
  std::vector<Represented> tasks;  // each key once
  for (const TaskTrials& task : dataset.tasks) {
    if (tasks.empty() || tasks.back().key != task.key)
      tasks.push_back({task.key, task.kernel_class, task.dag.get()});
  }
  return representatives(tasks, count);
}

std::vector<ListedTask> representatives(std::span<const Represented> tasks, int count) {
  std::vector<std::vector<float>> rows;
  for (const Represented& task : tasks) rows.push_back(unit_ranks(cost::task_features(*task.dag)));
  const size_t n = tasks.size();
  std::vector<float> distances(n * n);
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < a; ++b) {
      distances[a * n + b] = distances[b * n + a] =
          static_cast<float>(std::max(0.0, 1 - inner_product(rows[a], rows[b])));
    }
  }
  const std::vector<size_t> medoids = k_medoids(distances, n, static_cast<size_t>(count));
  std::vector<ListedTask> chosen;
  for (const size_t place : medoids)
    chosen.push_back({tasks[place].key, tasks[place].kernel_class, 0, 0});
  for (size_t i = 0; i < n; ++i) {
    const auto distance = [&](size_t m) { return distances[medoids[m] * n + i]; };
    size_t nearest = 0;
    for (size_t m = 1; m < medoids.size(); ++m) {
      if (distance(m) < distance(nearest)) nearest = m;
    }
    chosen[nearest].cluster += 1;
    chosen[nearest].similarity += 1 - static_cast<double>(distance(nearest));
  }
  for (ListedTask& task : chosen) task.similarity /= std::max(task.cluster, 1);
  std::stable_sort(chosen.begin(), chosen.end(), [](const ListedTask& a, const ListedTask& b) {
    return a.cluster != b.cluster ? a.cluster > b.cluster : a.key < b.key;
  });
  return chosen;
}

}  // namespace hone::learn
