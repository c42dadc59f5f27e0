#include "hone/search/guide.h"

#include <algorithm>
#include <cmath>

#include "hone/search/prediction.h"

namespace hone::search {
namespace {

constexpr double kFailedFactor = 1.5;  // log(measured / predicted) that a failure counts as
constexpr size_t kMaxPredictions = 200'000;

}  // namespace

Guide::Guide(const SearchTask& task, double optimism, const Recall* recall,
             const space::Subspace* part)
    : task_(task),
      part_(part ? *part : space::Subspace(*task.space)),
      recall_(recall),
      revision_(revision()),
      optimism_(optimism),
      proposals_(*task.space),
      rng_(hash_combine(task.seed, task.key)) {}

uint64_t Guide::revision() const {
  return task_.model->revision() + (recall_ ? recall_->revision() : 0);
}

void Guide::correct(const MeasuredPoint& observed, double predicted) {
  if (!std::isfinite(predicted)) return;
  const bool failed = !std::isfinite(observed.seconds);
  const double factor =
      failed ? kFailedFactor : std::log(std::max(observed.seconds, 1e-12)) - predicted;
  correction_.add(observed.point.sketch, task_.space->encode(observed.point), factor);
}

void Guide::relearn() {
  revision_ = revision();
  predictions_.clear();
  correction_ = Correction();
  std::vector<space::Point> points;
  for (const MeasuredPoint& observed : history_) points.push_back(observed.point);
  const std::vector<double> predicted = predict(points);
  for (size_t i = 0; i < history_.size(); ++i) correct(history_[i], predicted[i]);
  correction_.fit();
}

std::vector<double> Guide::predict(std::span<const space::Point> points) {
  if (revision() != revision_) relearn();
  if (predictions_.size() > kMaxPredictions) predictions_.clear();
  std::vector<space::Point> fresh;
  for (const space::Point& point : points) {
    if (predictions_.emplace(space::hash(point), INFINITY).second) fresh.push_back(point);
  }
  const std::vector<double> fresh_logs = predict_log_seconds(task_, fresh);
  if (revision() != revision_) return predict(points);  // the model cannot judge the task after all
  for (size_t i = 0; i < fresh.size(); ++i) {
    const double recalled = recall_ ? recall_->log_factor(task_, fresh[i]) : 0;
    predictions_[space::hash(fresh[i])] = fresh_logs[i] + recalled;
  }
  std::vector<double> logs;
  logs.reserve(points.size());
  for (const space::Point& point : points) logs.push_back(predictions_.at(space::hash(point)));
  return logs;
}

std::vector<Scored> Guide::rank(std::vector<space::Point> points) {
  if (usual_) {
    for (space::Point& point : points) point = usual_->as_usual(std::move(point));
  }
  if (!part_.is_whole()) {  // whatever strategies start from, they move in the part
    for (space::Point& point : points) {
      const bool legal = task_.space->legal(part_.hold(point)) || task_.space->legal(point);
      if (legal) point = part_.project(point);
    }
  }
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
    std::vector<Scored> around = rank(part_.neighbours(from.point));
    if (around.empty() || around[0].score >= from.score) break;
    from = std::move(around[0]);
  }
  return from;
}

std::vector<Scored> Guide::climbed_samples(int samples, size_t climbers, int max_steps) {
  std::vector<space::Point> points = task_.space->default_points();
  for (int i = 0; i < samples; ++i) points.push_back(part_.sample(rng_));
  std::vector<Scored> best = rank(std::move(points));
  if (best.size() > climbers) best.resize(climbers);
  for (Scored& climber : best) climber = climb(std::move(climber), max_steps);
  std::stable_sort(best.begin(), best.end(),
                   [](const Scored& a, const Scored& b) { return a.score < b.score; });
  return best;
}

void Guide::observe(std::span<const space::Point> points, std::span<const double> seconds) {
  HONE_ASSERT(points.size() == seconds.size(), "one time per point");
  // Of many records of earlier runs the correction needs the newest alone.
  const size_t old = points.size() - std::min(points.size(), Correction::kMaximum);
  const std::vector<double> predicted = predict(points.subspan(old));
  std::vector<MeasuredPoint> fresh;
  for (size_t i = 0; i < points.size(); ++i) {
    proposals_.take(points[i]);
    const bool known = !times_.insert_or_assign(space::hash(points[i]), seconds[i]).second;
    // Two times of one point would lead a descent from the one to the other and back for ever.
    if (known) {
      const auto same = [&](const MeasuredPoint& m) { return m.point == points[i]; };
      std::erase_if(measured_, same);
      std::erase_if(fresh, same);
    }
    if (std::isfinite(seconds[i])) fresh.push_back({points[i], seconds[i]});
    if (i < old) continue;
    history_.push_back({points[i], seconds[i]});
    correct(history_.back(), predicted[i - old]);
  }
  const auto faster = [](const MeasuredPoint& a, const MeasuredPoint& b) {
    return a.seconds < b.seconds;
  };
  std::stable_sort(fresh.begin(), fresh.end(), faster);
  const auto middle = std::ssize(measured_);
  measured_.insert(measured_.end(), fresh.begin(), fresh.end());
  std::inplace_merge(measured_.begin(), measured_.begin() + middle, measured_.end(), faster);
  if (history_.size() > Correction::kMaximum)
    history_.erase(history_.begin(),
                   history_.end() - static_cast<std::ptrdiff_t>(Correction::kMaximum));
}

const double* Guide::seconds_of(const space::Point& point) const {
  const auto found = times_.find(space::hash(point));
  return found == times_.end() ? nullptr : &found->second;
}

}  // namespace hone::search
