#include "hone/search/evolutionary_searcher.h"

#include <algorithm>
#include <cmath>

#include "hone/search/prediction.h"

namespace hone::search {
namespace {

constexpr double kFailedFactor = 1.5;  // log(measured / predicted) that a failure counts as
constexpr size_t kElite = 24;          // measured points among the parents
constexpr size_t kDescentCentres = 3;  // measured points whose neighbours are tried
constexpr size_t kMaxPredictions = 200'000;

}  // namespace

EvolutionarySearcher::EvolutionarySearcher(const SearchTask& task, const EvolutionOptions& options)
    : task_(task),
      options_(options),
      proposals_(*task.space),
      rng_(hash_combine(task.seed, task.key)) {}

std::vector<double> EvolutionarySearcher::predict(std::span<const space::Point> points) {
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

std::vector<EvolutionarySearcher::Scored> EvolutionarySearcher::rank(
    std::vector<space::Point> points) {
  const std::vector<double> logs = predict(points);
  std::vector<Scored> ranked;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(logs[i])) continue;
    const Estimate estimate =
        correction_.size() < Correction::kMinimum
            ? Estimate{0, 0}
            : correction_.estimate(points[i].sketch, task_.space->encode(points[i]));
    ranked.push_back({std::move(points[i]),
                      logs[i] + estimate.log_factor - options_.optimism * estimate.deviation});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Scored& a, const Scored& b) { return a.score < b.score; });
  return ranked;
}

const space::Point& EvolutionarySearcher::tournament(const std::vector<Scored>& parents) {
  const int64_t n = static_cast<int64_t>(parents.size());
  return parents[static_cast<size_t>(std::min(rng_.below(n), rng_.below(n)))].point;
}

std::vector<EvolutionarySearcher::Scored> EvolutionarySearcher::evolve() {
  std::vector<space::Point> points = std::move(survivors_);
  const int samples = points.empty() ? options_.first_population : options_.population / 2;
  points.push_back(task_.space->default_point());
  for (size_t i = 0; i < std::min(kElite, measured_.size()); ++i)
    points.push_back(measured_[i].point);
  for (int i = 0; i < samples; ++i) points.push_back(task_.space->sample(rng_));

  std::unordered_set<uint64_t> present;
  std::vector<Scored> ranked;
  const auto absorb = [&](std::vector<space::Point> fresh) {
    std::erase_if(fresh,
                  [&](const space::Point& p) { return !present.insert(space::hash(p)).second; });
    std::vector<Scored> more = rank(std::move(fresh));
    const auto middle = static_cast<std::ptrdiff_t>(ranked.size());
    ranked.insert(ranked.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
    std::inplace_merge(ranked.begin(), ranked.begin() + middle, ranked.end(),
                       [](const Scored& a, const Scored& b) { return a.score < b.score; });
  };
  absorb(std::move(points));
  for (int generation = 0; generation < options_.generations && !ranked.empty(); ++generation) {
    std::vector<Scored> parents(
        ranked.begin(),
        ranked.begin() + std::min<std::ptrdiff_t>(options_.population, std::ssize(ranked)));
    std::vector<space::Point> children;
    for (int i = 0; i < options_.population; ++i) {
      const space::Point& parent = tournament(parents);
      children.push_back(rng_.chance(options_.crossover)
                             ? task_.space->crossover(parent, tournament(parents), rng_)
                             : task_.space->mutate(parent, rng_));
    }
    absorb(std::move(children));
  }
  for (const Scored& scored : ranked) {
    if (static_cast<int>(survivors_.size()) >= options_.population / 2) break;
    survivors_.push_back(scored.point);
  }
  return ranked;
}

std::vector<EvolutionarySearcher::Scored> EvolutionarySearcher::descend() {
  std::vector<space::Point> points;
  for (size_t i = 0; i < std::min(kDescentCentres, measured_.size()); ++i) {
    if (measured_[i].seconds > 1.2 * measured_[0].seconds) break;
    for (space::Point& point : task_.space->neighbours(measured_[i].point))
      points.push_back(std::move(point));
  }
  return rank(std::move(points));
}

std::vector<space::Point> EvolutionarySearcher::propose(int n) {
  std::vector<space::Point> batch;
  const auto full = [&batch](int limit) { return static_cast<int>(batch.size()) >= limit; };
  const auto add_best = [&](const std::vector<Scored>& ranked, int limit) {
    for (const Scored& scored : ranked) {
      if (full(limit)) return;
      if (proposals_.take(scored.point)) batch.push_back(scored.point);
    }
  };
  if (n <= 0) return batch;
  if (const space::Point start = task_.space->default_point(); proposals_.take(start))
    batch.push_back(start);
  correction_.fit();
  int random = 0;
  for (int i = 0; i < n; ++i) random += rng_.chance(options_.random_share);
  const int guided = std::max(n - random, 1);
  if (observations_ >= options_.descent_after) {
    const int share = static_cast<int>(std::lround(options_.descent_share * n));
    add_best(descend(), std::min(static_cast<int>(batch.size()) + share, guided));
  }
  add_best(evolve(), guided);
  for (int misses = 0; !full(n) && misses < 200;) {
    space::Point point = task_.space->sample(rng_);
    if (proposals_.take(point))
      batch.push_back(std::move(point));
    else
      ++misses;
  }
  return batch;
}

void EvolutionarySearcher::observe(std::span<const space::Point> points,
                                   std::span<const double> seconds) {
  HONE_ASSERT(points.size() == seconds.size(), "one time per point");
  const std::vector<double> predicted = predict(points);
  for (size_t i = 0; i < points.size(); ++i) {
    proposals_.take(points[i]);
    ++observations_;
    const bool failed = !std::isfinite(seconds[i]);
    if (std::isfinite(predicted[i])) {
      const double factor =
          failed ? kFailedFactor : std::log(std::max(seconds[i], 1e-12)) - predicted[i];
      correction_.add(points[i].sketch, task_.space->encode(points[i]), factor);
    }
    if (failed) continue;
    const auto place = std::upper_bound(measured_.begin(), measured_.end(), seconds[i],
                                        [](double s, const Measured& m) { return s < m.seconds; });
    measured_.insert(place, {points[i], seconds[i]});
  }
}

}  // namespace hone::search
