#include "hone/search/guide.h"

#include <algorithm>
#include <cmath>

#include "hone/search/prediction.h"

namespace hone::search {
namespace {

constexpr double kFailedFactor = 1.5;  // log(measured / predicted) that a failure counts as
constexpr size_t kMaxPredictions = 200'000;

}  // namespace

Guide::Guide(const SearchTask& task, double optimism)
    : task_(task),
      optimism_(optimism),
      proposals_(*task.space),
      rng_(hash_combine(task.seed, task.key)) {}

std::vector<double> Guide::predict(std::span<const space::Point> points) {
  if (predictions_.size() > kMaxPredictions) predictions_.clear();
  std::vector<space::Point> fresh;
  for (const space::Point& point : points) {
    if (predictions_.emplace(space::hash(point), INFINITY).second) fresh.push_back(point);
  }
  const std::vector<double> fresh_logs = predict_log_seconds(task_, fresh);
  for (size_t i = 0; i < fresh.size(); ++i) predictions_[space::hash(fresh[i])] = fresh_logs[i];
  std::vector<double> logs;
  logs.reserve(points.size());
  for (const space::Point& point : points) logs.push_back(predictions_.at(space::hash(point)));
  return logs;
}

std::vector<Scored> Guide::rank(std::vector<space::Point> points) {
  std::unordered_set<uint64_t> present;
  std::erase_if(points, [&](const space::Point& p) {
    return !task_.space->legal(p) || !present.insert(space::hash(p)).second;
  });
  const std::vector<double> logs = predict(points);
  std::vector<Scored> ranked;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(logs[i])) continue;
    const Estimate estimate =
        correction_.size() < Correction::kMinimum
            ? Estimate{0, 0}
            : correction_.estimate(points[i].sketch, task_.space->encode(points[i]));
    const double expected = logs[i] + estimate.log_factor;
    ranked.push_back({std::move(points[i]), expected - optimism_ * estimate.deviation, expected,
                      estimate.deviation});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Scored& a, const Scored& b) { return a.score < b.score; });
  return ranked;
}

Scored Guide::climb(Scored from, int max_steps) {
  for (int step = 0; step < max_steps; ++step) {
    std::vector<Scored> around = rank(task_.space->neighbours(from.point));
    if (around.empty() || around[0].score >= from.score) break;
    from = std::move(around[0]);
  }
  return from;
}

std::vector<Scored> Guide::climbed_samples(int samples, size_t climbers, int max_steps) {
  std::vector<space::Point> points;
  for (int sketch = 0; sketch < task_.space->num_sketches(); ++sketch)
    points.push_back(task_.space->default_point(sketch));
  for (int i = 0; i < samples; ++i) points.push_back(task_.space->sample(rng_));
  std::vector<Scored> best = rank(std::move(points));
  if (best.size() > climbers) best.resize(climbers);
  for (Scored& climber : best) climber = climb(std::move(climber), max_steps);
  std::stable_sort(best.begin(), best.end(),
                   [](const Scored& a, const Scored& b) { return a.score < b.score; });
  return best;
}

void Guide::observe(std::span<const space::Point> points, std::span<const double> seconds) {
  HONE_ASSERT(points.size() == seconds.size(), "one time per point");
  const std::vector<double> predicted = predict(points);
  for (size_t i = 0; i < points.size(); ++i) {
    proposals_.take(points[i]);
    times_[space::hash(points[i])] = seconds[i];
    const bool failed = !std::isfinite(seconds[i]);
    if (std::isfinite(predicted[i])) {
      const double factor =
          failed ? kFailedFactor : std::log(std::max(seconds[i], 1e-12)) - predicted[i];
      correction_.add(points[i].sketch, task_.space->encode(points[i]), factor);
    }
    if (failed) continue;
    const auto place =
        std::upper_bound(measured_.begin(), measured_.end(), seconds[i],
                         [](double s, const MeasuredPoint& m) { return s < m.seconds; });
    measured_.insert(place, {points[i], seconds[i]});
  }
}

const double* Guide::seconds_of(const space::Point& point) const {
  const auto found = times_.find(space::hash(point));
  return found == times_.end() ? nullptr : &found->second;
}

}  // namespace hone::search
