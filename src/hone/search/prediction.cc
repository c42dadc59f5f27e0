#include "hone/search/prediction.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace hone::search {

std::vector<double> predict_log_seconds(const SearchTask& task,
                                        std::span<const space::Point> points) {
  std::vector<double> logs(points.size(), INFINITY);
  std::vector<space::Candidate> candidates;
  candidates.reserve(points.size());  // queries point into it
  std::vector<cost::Query> queries;
  std::vector<size_t> places;
  for (size_t i = 0; i < points.size(); ++i) {
    Result<space::Candidate> candidate = task.space->instantiate(points[i]);
    if (!candidate.ok()) continue;
    candidates.push_back(std::move(candidate).value());
    queries.push_back({&candidates.back(), task.target, task.threads, task.key});
    places.push_back(i);
  }
  const Result<std::vector<double>> seconds = task.model->predict(queries);
  for (size_t i = 0; i < places.size(); ++i) {
    logs[places[i]] = seconds.ok() ? std::log(std::max((*seconds)[i], 1e-12)) : 0.0;
  }
  return logs;
}

Predicted best_predicted(const SearchTask& task, const BestPredictedOptions& options) {
  struct Scored {
    space::Point point;
    double log_seconds;
  };
  Rng rng(hash_combine(task.seed, task.key));
  std::unordered_set<uint64_t> seen;
  const auto score = [&](std::vector<space::Point> points) {
    std::erase_if(points,
                  [&](const space::Point& p) { return !seen.insert(space::hash(p)).second; });
    const std::vector<double> logs = predict_log_seconds(task, points);
    std::vector<Scored> scored;
    for (size_t i = 0; i < points.size(); ++i) {
      if (std::isfinite(logs[i])) scored.push_back({std::move(points[i]), logs[i]});
    }
    std::stable_sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) {
      return a.log_seconds < b.log_seconds;
    });
    return scored;
  };

  const space::Point start = task.space->default_point();
  const double start_log = predict_log_seconds(task, std::span(&start, 1))[0];
  std::vector<space::Point> points;
  for (int sketch = 0; sketch < task.space->num_sketches(); ++sketch)
    points.push_back(task.space->default_point(sketch));
  for (int i = 0; i < options.samples; ++i) points.push_back(task.space->sample(rng));
  std::vector<Scored> best = score(std::move(points));
  if (std::ssize(best) > options.climbers) best.erase(best.begin() + options.climbers, best.end());
  if (std::isfinite(start_log)) best.push_back({start, start_log});
  for (Scored& climber : best) {
    for (int step = 0; step < options.max_climb; ++step) {
      std::vector<Scored> around = score(task.space->neighbours(climber.point));
      if (around.empty() || around[0].log_seconds >= climber.log_seconds) break;
      climber = std::move(around[0]);
    }
  }
  Scored winner = {start, start_log};
  double to_beat = start_log + std::log1p(-options.margin);
  for (Scored& climber : best) {
    if (climber.log_seconds < to_beat) to_beat = climber.log_seconds, winner = std::move(climber);
  }
  return {std::move(winner.point), std::exp(winner.log_seconds), std::exp(start_log)};
}

}  // namespace hone::search
