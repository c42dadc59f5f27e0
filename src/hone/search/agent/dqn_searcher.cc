#include "hone/search/agent/dqn_searcher.h"

#include <algorithm>

#include "hone/search/agent/dqn_walk.h"

namespace hone::search {
namespace {

constexpr size_t kStarts = 3;  // measured points that walks start from

}  // namespace

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

void DqnSearcher::walk(std::vector<space::Point>& visited) {
  const auto choose = [&](const DqnPlace& place) {
    return agent_->choose(*place.state, place.moves, guide().rng());
  };
  const auto note = [&](Transition made) { agent_->note(std::move(made)); };
  dqn_walk(guide(), options_, start(), {choose, note}, visited);
}

void DqnSearcher::fill(Batch& batch, int count) {
  std::vector<space::Point> visited;
  for (int i = 0; i < options_.walks; ++i) walk(visited);
  batch.add_best(guide().rank(std::move(visited)), count);
}

}  // namespace hone::search
