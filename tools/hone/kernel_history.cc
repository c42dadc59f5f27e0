#include "kernel_history.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace hone::tool {
namespace {

constexpr std::string_view kSketch = "sketch";

// The indices of `count` of `size` things, evenly spread, with the first and the last one.
std::vector<size_t> spread(size_t size, size_t count) {
  std::vector<size_t> indices;
  count = std::min(size, count);
  for (size_t i = 0; i < count; ++i)
    indices.push_back(count == 1 ? size - 1 : i * (size - 1) / (count - 1));
  return indices;
}

}  // namespace

void KernelHistory::Sums::add(double seconds) {
  const double log = std::log(seconds);
  ++count;
  sum += log;
  squares += log * log;
  best = best > 0 ? std::min(best, seconds) : seconds;
}

void KernelHistory::add(const TrialInfo& trial, double at, int64_t number) {
  const bool ok = trial.outcome == "ok" && trial.seconds > 0;
  kernel_class_ = trial.kernel_class;
  points_.push_back({at, number, ok ? trial.seconds : 0});
  failed_ += ok ? 0 : 1;
  if (!ok) return;
  add_decisions(trial.decisions, trial.seconds);
  if (!trial.verified || (!improvements_.empty() && trial.seconds >= best_seconds())) return;
  improvements_.push_back(points_.back());
  best_steps_ = trial.steps;
  best_algorithm_ = trial.algorithm;
}

// "direct relu:lanes=8 relu:column=7/56": a sketch, then values, some of them with their extent.
void KernelHistory::add_decisions(std::string_view text, double seconds) {
  bool first = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    if (first || equals == std::string_view::npos) {
      if (first) decisions_[std::string(kSketch)][std::string(word)].add(seconds);
      first = false;
      continue;
    }
    std::string_view value = word.substr(equals + 1);
    value = value.substr(0, value.find('/'));
    decisions_[std::string(word.substr(0, equals))][std::string(value)].add(seconds);
  }
}

std::vector<HistoryPoint> KernelHistory::points(size_t most) const {
  if (points_.size() <= most) return points_;
  std::set<int64_t> kept;
  for (const HistoryPoint& point : thinned(improvements_, most)) kept.insert(point.number);
  for (const size_t i : spread(points_.size(), most - std::min(most, kept.size())))
    kept.insert(points_[i].number);
  std::vector<HistoryPoint> chosen;
  for (const HistoryPoint& point : points_) {
    if (kept.contains(point.number)) chosen.push_back(point);
  }
  return chosen;
}

std::vector<DecisionEffect> KernelHistory::decisions() const {
  std::vector<DecisionEffect> effects;
  for (const auto& [name, values] : decisions_) {
    if (values.size() < 2) continue;
    DecisionEffect effect{.name = name, .values = static_cast<int>(values.size()), .best = {}};
    Sums all;
    double within = 0, best = INFINITY, second = INFINITY;
    for (const auto& [value, sums] : values) {
      all.count += sums.count, all.sum += sums.sum, all.squares += sums.squares;
      within += std::max(0.0, sums.squares - sums.sum * sums.sum / sums.count);
      if (sums.best < best) {
        second = best, best = sums.best;
        effect.best = value;
      } else {
        second = std::min(second, sums.best);
      }
    }
    const double total = all.squares - all.sum * all.sum / all.count;
    const auto groups = static_cast<double>(values.size());
    if (total > 0 && all.count > groups) {
      const double noise = within / (all.count - groups);
      effect.explained = std::clamp((total - within - (groups - 1) * noise) / total, 0.0, 1.0);
    }
    effect.other = second / best;
    effects.push_back(std::move(effect));
  }
  std::stable_sort(effects.begin(), effects.end(),
                   [](const auto& a, const auto& b) { return a.explained > b.explained; });
  return effects;
}

std::vector<HistoryPoint> model_curve(const std::vector<CurveKernel>& kernels) {
  struct Event {
    HistoryPoint point;
    double gain;  // seconds of a run of the model
  };
  std::vector<Event> events;
  double seconds = 0;
  for (const CurveKernel& kernel : kernels) {
    const std::vector<HistoryPoint>& points = kernel.history->improvements();
    if (points.empty()) continue;
    seconds += kernel.times * points[0].seconds;
    events.push_back({points[0], 0});
    for (size_t i = 1; i < points.size(); ++i)
      events.push_back({points[i], kernel.times * (points[i - 1].seconds - points[i].seconds)});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.point.number < b.point.number; });
  std::vector<HistoryPoint> curve;
  for (const Event& event : events) {
    seconds -= event.gain;
    if (event.gain > 0 || curve.empty())
      curve.push_back({event.point.at, event.point.number, seconds});
  }
  return curve;
}

std::vector<HistoryPoint> thinned(std::vector<HistoryPoint> points, size_t most) {
  if (points.size() <= most) return points;
  std::vector<HistoryPoint> chosen;
  for (const size_t i : spread(points.size(), most)) chosen.push_back(points[i]);
  return chosen;
}

}  // namespace hone::tool
