#include "hone/search/es_searcher.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone::search {
namespace {

constexpr size_t kMostSketches = 3;  // the best predicted ones have a distribution

// Fitness by rank, from 0.5 for the fastest to -0.5 for the slowest (as in Salimans et al., 2017),
// so that one very slow schedule moves nothing by itself. Times that are not known count as
// slowest.
std::vector<double> fitness_of(std::span<const double> log_seconds) {
  std::vector<size_t> order(log_seconds.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return log_seconds[i]; });
  std::vector<double> fitness(log_seconds.size());
  const double last = std::max<double>(static_cast<double>(order.size()) - 1, 1);
  for (size_t r = 0; r < order.size(); ++r) fitness[order[r]] = 0.5 - static_cast<double>(r) / last;
  return fitness;
}

}  // namespace

EsSearcher::Distribution EsSearcher::around(const space::Point& point) {
  Distribution distribution;
  distribution.sketch = point.sketch;
  for (const float x : guide().space().encode(point)) distribution.mean.push_back(x);
  distribution.log_sigma.assign(distribution.mean.size(), std::log(options_.sigma));
  return distribution;
}

space::Point EsSearcher::point_at(const Distribution& distribution, std::span<const double> noise) {
  const std::vector<space::Decision>& decisions = guide().space().decisions(distribution.sketch);
  space::Point point{distribution.sketch, {}};
  for (size_t d = 0; d < decisions.size(); ++d) {
    const double place = distribution.mean[d] + std::exp(distribution.log_sigma[d]) * noise[d];
    const auto last = static_cast<double>(decisions[d].options.size()) - 1;
    point.choices.push_back(static_cast<int>(std::lround(std::clamp(place, 0.0, 1.0) * last)));
  }
  point = guide().part().hold(std::move(point));
  return guide().space().legal(point) ? guide().part().project(point) : point;
}

// The natural gradient of a normal distribution without covariances: of the mean, in units of the
// deviation, the mean of fitness times noise; of the logarithm of the deviation that of fitness
// times (noise^2 - 1) / 2.
void EsSearcher::move(Distribution& distribution, std::span<const Sample> samples) const {
  const auto count = static_cast<double>(samples.size());
  for (size_t d = 0; d < distribution.mean.size(); ++d) {
    double by_mean = 0, by_sigma = 0;
    for (const Sample& sample : samples) {
      by_mean += sample.fitness * sample.noise[d] / count;
      by_sigma += sample.fitness * (sample.noise[d] * sample.noise[d] - 1) / 2 / count;
    }
    const double sigma = std::exp(distribution.log_sigma[d]);
    // The scale of fitness by rank is fixed; with 4 a rate of 1 moves by about one deviation.
    distribution.mean[d] =
        std::clamp(distribution.mean[d] + 4 * options_.rate * sigma * by_mean, 0.0, 1.0);
    distribution.log_sigma[d] =
        std::clamp(distribution.log_sigma[d] + 4 * options_.sigma_rate * by_sigma,
                   std::log(options_.least_sigma), std::log(1.0));
  }
}

void EsSearcher::evolve(Distribution& distribution, std::vector<space::Point>& visited) {
  if (distribution.mean.empty()) return;
  for (int generation = 0; generation < options_.generations; ++generation) {
    std::vector<Sample> samples(static_cast<size_t>(options_.population));
    std::vector<space::Point> points;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (i % 2 == 1) {  // mirrored, which makes the gradient less noisy
        samples[i].noise = samples[i - 1].noise;
        for (double& x : samples[i].noise) x = -x;
      } else {
        for (size_t d = 0; d < distribution.mean.size(); ++d)
          samples[i].noise.push_back(guide().rng().normal());
      }
      points.push_back(point_at(distribution, samples[i].noise));
    }
    std::vector<double> times(samples.size(), INFINITY);
    for (const Scored& scored : guide().rank(points)) {
      for (size_t i = 0; i < points.size(); ++i) {
        if (points[i] == scored.point) times[i] = scored.score;
      }
      visited.push_back(scored.point);
    }
    const std::vector<double> fitness = fitness_of(times);
    for (size_t i = 0; i < samples.size(); ++i) samples[i].fitness = fitness[i];
    move(distribution, samples);
  }
}

// A sketch that turned out to be the fastest without having a distribution takes the place of the
// one whose schedules are the slowest, or were never measured.
void EsSearcher::start_again(const space::Point& best) {
  for (Distribution& distribution : distributions_) {
    if (distribution.sketch != best.sketch) continue;
    distribution = around(best);
    return;
  }
  const auto rank = [&](const Distribution& distribution) {
    return std::ranges::find(guide().measured(), distribution.sketch,
                             [](const MeasuredPoint& m) { return m.point.sketch; }) -
           guide().measured().begin();
  };
  if (distributions_.size() >= kMostSketches)
    distributions_.erase(std::ranges::max_element(distributions_, {}, rank));
  distributions_.push_back(around(best));
}

void EsSearcher::fill(Batch& batch, int count) {
  std::vector<space::Point> visited;
  if (distributions_.empty()) {
    for (const Scored& scored : guide().rank(guide().space().default_points())) {
      if (distributions_.size() == kMostSketches) break;
      distributions_.push_back(around(scored.point));
    }
  } else if (!guide().measured().empty()) {
    start_again(guide().measured()[0].point);
  }
  for (Distribution& distribution : distributions_) evolve(distribution, visited);
  batch.add_best(guide().rank(std::move(visited)), count);
}

}  // namespace hone::search
