#include "hone/search/agent/dqn_walk.h"

#include <algorithm>
#include <cmath>

namespace hone::search {
namespace {

constexpr double kSlowest = 4;  // of times relative to the walk's first one

DqnPlace arrive(const Guide& guide, const Scored& at, std::span<const space::Point> visited) {
  DqnPlace place;
  place.point = at.point;
  const double* const measured = guide.seconds_of(at.point);
  place.log_seconds = measured != nullptr ? std::log(*measured) : at.log_seconds;
  Sight sight = look_at(guide.task(), at.point);
  place.state = std::make_shared<const std::vector<float>>(std::move(sight.state));
  place.bounds = sight.bounds;
  for (space::Point& next : guide.part().neighbours(at.point)) {
    if (std::ranges::find(visited, next) != visited.end()) continue;
    place.moves.push_back(describe_move(guide.space(), at.point, next));
    place.neighbours.push_back(std::move(next));
  }
  return place;
}

}  // namespace

void dqn_walk(Guide& guide, const DqnOptions& options, const space::Point& start,
              const DqnWalker& walker, std::vector<space::Point>& visited) {
  const std::vector<Scored> first = guide.rank({start});
  if (first.empty()) return;
  visited.push_back(first[0].point);
  DqnPlace here = arrive(guide, first[0], visited);
  if (!std::isfinite(here.log_seconds)) return;  // it failed: no time is relative to its
  const double zero = here.log_seconds;
  const auto time_of = [&](const DqnPlace& at) {
    return std::min(std::exp(at.log_seconds - zero), kSlowest);
  };
  const int last = static_cast<int>(visited.size()) + options.candidates - 1;
  for (int step = 1; std::ssize(visited) < last && !here.moves.empty(); ++step) {
    const size_t chosen = walker.choose(here);
    const std::vector<Scored> next = guide.rank({here.neighbours[chosen]});
    if (next.empty()) {  // it cannot run on so many threads
      here.neighbours.erase(here.neighbours.begin() + static_cast<std::ptrdiff_t>(chosen));
      here.moves.erase(here.moves.begin() + static_cast<std::ptrdiff_t>(chosen));
      continue;
    }
    visited.push_back(next[0].point);
    DqnPlace there = arrive(guide, next[0], visited);
    Transition made{here.state, there.state, here.moves[chosen], {}, 0};
    made.reward = dqn_reward(options, time_of(here), time_of(there), there.bounds,
                             static_cast<double>(step) / options.candidates);
    if (std::ssize(visited) < last) made.next_moves = there.moves;
    walker.tell(std::move(made));
    here = std::move(there);
  }
}

}  // namespace hone::search
