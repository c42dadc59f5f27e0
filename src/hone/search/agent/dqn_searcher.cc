#include "hone/search/agent/dqn_searcher.h"

#include <algorithm>
#include <cmath>

namespace hone::search {
namespace {

constexpr size_t kStarts = 3;   // measured points that walks start from
constexpr double kSlowest = 4;  // of times relative to the walk's first one

}  // namespace

struct DqnSearcher::Place {
  Scored at;
  std::shared_ptr<const std::vector<float>> state;
  trial::BoundScores bounds;
  std::vector<Scored> neighbours;         // that were not visited
  std::vector<std::vector<float>> moves;  // to each of them
};

// One of the best measured points or the default point that seems best. Moves stay in a sketch, so
// the default points are the way to the other sketches.
space::Point DqnSearcher::start() {
  if (guide().rng().chance(options_.sampled)) return guide().part().sample(guide().rng());
  std::vector<space::Point> starts;
  const std::vector<MeasuredPoint>& measured = guide().measured();
  for (size_t i = 0; i < std::min(kStarts, measured.size()); ++i)
    starts.push_back(measured[i].point);
  const std::vector<Scored> defaults = guide().rank(guide().space().default_points());
  starts.push_back(defaults.empty() ? guide().space().default_point() : defaults[0].point);
  return guide().rng().choice(starts);
}

DqnSearcher::Place DqnSearcher::arrive(const Scored& at, std::span<const space::Point> visited) {
  Place place;
  place.at = at;
  Sight sight = look_at(guide().task(), at.point);
  place.state = std::make_shared<const std::vector<float>>(std::move(sight.state));
  place.bounds = sight.bounds;
  for (space::Point& next : guide().part().neighbours(at.point)) {
    if (std::ranges::find(visited, next) != visited.end()) continue;
    place.moves.push_back(describe_move(guide().space(), at.point, next));
    place.neighbours.push_back({std::move(next)});
  }
  return place;
}

void DqnSearcher::walk(std::vector<space::Point>& visited) {
  std::vector<Scored> first = guide().rank({start()});
  if (first.empty()) return;
  const double zero = first[0].log_seconds;
  const auto time_of = [&](const Scored& at) {
    return std::min(std::exp(at.log_seconds - zero), kSlowest);
  };
  visited.push_back(first[0].point);
  Place here = arrive(first[0], visited);
  const int last = static_cast<int>(visited.size()) + options_.candidates - 1;
  for (int step = 1; std::ssize(visited) < last && !here.moves.empty(); ++step) {
    const size_t chosen = agent_->choose(*here.state, here.moves, guide().rng());
    std::vector<Scored> next = guide().rank({here.neighbours[chosen].point});
    if (next.empty()) {  // it cannot run on so many threads
      here.neighbours.erase(here.neighbours.begin() + static_cast<std::ptrdiff_t>(chosen));
      here.moves.erase(here.moves.begin() + static_cast<std::ptrdiff_t>(chosen));
      continue;
    }
    visited.push_back(next[0].point);
    Place there = arrive(next[0], visited);
    Transition made{here.state, there.state, here.moves[chosen], {}, 0};
    made.reward = dqn_reward(options_, time_of(here.at), time_of(there.at), there.bounds,
                             static_cast<double>(step) / options_.candidates);
    if (std::ssize(visited) < last) made.next_moves = there.moves;
    agent_->remember(std::move(made), guide().rng());
    here = std::move(there);
  }
}

void DqnSearcher::fill(Batch& batch, int count) {
  std::vector<space::Point> visited;
  for (int i = 0; i < options_.walks; ++i) walk(visited);
  batch.add_best(guide().rank(std::move(visited)), count);
}

}  // namespace hone::search
