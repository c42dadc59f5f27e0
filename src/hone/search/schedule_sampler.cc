#include "hone/search/schedule_sampler.h"

#include <algorithm>
#include <cmath>

#include "hone/search/prediction.h"

namespace hone::search {
namespace {

constexpr size_t kParents = 16;  // the fastest measured ones
constexpr int kPool = 8;         // points that are ranked for each that is taken
constexpr double kCrossover = 0.2;
constexpr int kAttempts = 20;  // for each random point
// For all of them: a space of which a run wants one more point is not dry after a few draws.
constexpr int kLeastAttempts = 400;

class Batch {
 public:
  Batch(const SearchTask& task, std::unordered_set<uint64_t>& taken) : task_(task), taken_(taken) {}
  bool take(const space::Point& point) {
    if (!taken_.insert(schedule::hash(task_.space->steps(point))).second) return false;
    points_.push_back(point);
    return true;
  }
  [[nodiscard]] int size() const { return static_cast<int>(points_.size()); }
  [[nodiscard]] std::vector<space::Point> points() && { return std::move(points_); }

 private:
  const SearchTask& task_;
  std::unordered_set<uint64_t>& taken_;
  std::vector<space::Point> points_;
};

struct Parent {
  space::Point point;
  double correction = 0;  // measured less predicted, logarithms
};

// The nearer to the front, the more often: the better of two drawn.
const Parent& tournament(const std::vector<Parent>& parents, Rng& rng) {
  const auto n = static_cast<int64_t>(parents.size());
  return parents[static_cast<size_t>(std::min(rng.below(n), rng.below(n)))];
}

space::Point child_of(const Parent& parent, const std::vector<Parent>& parents,
                      const space::Space& space, Rng& rng) {
  if (!rng.chance(kCrossover)) return space.mutate(parent.point, rng);
  return space.crossover(parent.point, tournament(parents, rng).point, rng);
}

void take_random(const SearchTask& task, double limit, int n, Rng& rng, Batch& batch) {
  const int end = batch.size() + n;
  const int rounds = std::max(kAttempts, kLeastAttempts / std::max(n, 1));
  for (int round = 0; round < rounds && batch.size() < end; ++round) {
    std::vector<space::Point> points;
    for (int i = batch.size(); i < end; ++i) points.push_back(task.space->sample(rng));
    const std::vector<double> logs = predict_log_seconds(task, points);
    for (size_t i = 0; i < points.size(); ++i) {
      if (logs[i] < limit) batch.take(points[i]);
    }
  }
}

// The best of a pool of children and random points.
void take_ranked(const SearchTask& task, const std::vector<Parent>& parents, int n, Rng& rng,
                 Batch& batch) {
  if (n <= 0) return;
  std::vector<space::Point> pool;
  std::vector<double> corrections;
  for (int i = 0; i < n * kPool; ++i) {
    if (parents.empty() || i % 4 == 0) {
      pool.push_back(task.space->sample(rng));
      corrections.push_back(parents.empty() ? 0 : parents.front().correction);
    } else {
      const Parent& parent = tournament(parents, rng);
      pool.push_back(child_of(parent, parents, *task.space, rng));
      corrections.push_back(parent.correction);
    }
  }
  std::vector<double> scores = predict_log_seconds(task, pool);
  std::vector<size_t> order;
  for (size_t i = 0; i < pool.size(); ++i) {
    scores[i] += corrections[i];
    if (std::isfinite(scores[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  const int end = batch.size() + n;
  for (size_t i = 0; i < order.size() && batch.size() < end; ++i) batch.take(pool[order[i]]);
}

// Counts on, with the choices as digits. Returns false after the last number.
bool advance(std::vector<int>& choices, const std::vector<space::Decision>& decisions) {
  for (size_t i = 0; i < choices.size(); ++i) {
    if (++choices[i] < std::ssize(decisions[i].options)) return true;
    choices[i] = 0;
  }
  return false;
}

// Takes any that are left of a small space.
void take_rest(const SearchTask& task, int end, Rng& rng, Batch& batch) {
  if (batch.size() >= end || task.space->size() >= kSmallSpace) return;
  std::vector<space::Point> points = all_points(*task.space);
  rng.shuffle(points);
  for (size_t i = 0; i < points.size() && batch.size() < end; ++i) {
    if (task.threads > 1 || !task.space->is_for_threads(points[i].sketch)) batch.take(points[i]);
  }
}

}  // namespace

void FastestPoints::add(const space::Point& point, double seconds) {
  const auto place =
      std::upper_bound(entries_.begin(), entries_.end(), seconds,
                       [](double value, const Entry& entry) { return value < entry.seconds; });
  entries_.insert(place, {point, seconds});
  if (entries_.size() > kParents) entries_.pop_back();
}

std::vector<space::Point> all_points(const space::Space& space) {
  std::vector<space::Point> all;
  std::unordered_set<uint64_t> found;
  for (int sketch = 0; sketch < space.num_sketches(); ++sketch) {
    const std::vector<space::Decision>& decisions = space.decisions(sketch);
    space::Point point{sketch, std::vector<int>(decisions.size(), 0)};
    do {
      if (!space.legal(point)) continue;
      space::Point canonical = space.canonical(point);
      if (found.insert(hash(canonical)).second) all.push_back(std::move(canonical));
    } while (advance(point.choices, decisions));
  }
  return all;
}

std::vector<space::Point> sample_schedules(const SearchTask& task, const FastestPoints& fastest,
                                           std::unordered_set<uint64_t>& taken, int n, Rng& rng) {
  const space::Space& space = *task.space;
  Batch batch(task, taken);
  for (int sketch = 0; sketch < space.num_sketches() && batch.size() < n; ++sketch)
    batch.take(space.default_point(sketch));
  std::vector<space::Point> first = {space.default_point()};
  std::vector<Parent> parents;
  for (const FastestPoints::Entry& entry : fastest.entries()) {
    parents.push_back({entry.point, std::log(entry.seconds)});
    first.push_back(entry.point);
  }
  const std::vector<double> logs = predict_log_seconds(task, first);
  for (size_t i = 0; i < parents.size(); ++i) parents[i].correction -= logs[i + 1];
  const double limit = logs[0] + std::log(kHopeless);

  const int left = n - batch.size();
  take_random(task, limit, static_cast<int>(std::ceil(kRandomShare * left)), rng, batch);
  const int mutants = parents.empty() ? 0 : static_cast<int>(kMutantShare * left);
  for (int i = 0, taken = 0; i < kAttempts * mutants && taken < mutants; ++i)
    taken += batch.take(child_of(tournament(parents, rng), parents, space, rng));
  take_ranked(task, parents, n - batch.size(), rng, batch);
  take_rest(task, n, rng, batch);
  return std::move(batch).points();
}

}  // namespace hone::search
