#include "hone/search/agent/ppo_searcher.h"

#include <algorithm>
#include <cmath>

#include "hone/search/agent/clusters.h"

namespace hone::search {
namespace {

constexpr double kPenalty = 0.5;  // for a move to a schedule that is not legal

// The point that has the commonest option of each decision.
space::Point commonest(std::span<const Scored> points, int sketch) {
  space::Point mode{sketch, {}};
  std::vector<std::map<int, int>> counts;
  for (const Scored& scored : points) {
    if (scored.point.sketch != sketch) continue;
    counts.resize(scored.point.choices.size());
    for (size_t d = 0; d < counts.size(); ++d) ++counts[d][scored.point.choices[d]];
  }
  for (const std::map<int, int>& count : counts) {
    mode.choices.push_back(
        std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; })->first);
  }
  return mode;
}

}  // namespace

std::vector<space::Point> chain_starts(Guide& guide, int chains) {
  std::vector<space::Point> found;
  for (const MeasuredPoint& measured : guide.measured()) {
    if (2 * (std::ssize(found) + 1) >= chains) break;  // one default point has a place
    found.push_back(measured.point);
  }
  for (Scored& usual : guide.rank(guide.space().default_points())) {
    if (2 * std::ssize(found) >= chains) break;
    found.push_back(std::move(usual.point));
  }
  while (std::ssize(found) < chains) found.push_back(guide.part().sample(guide.rng()));
  return found;
}

PpoAgent& PpoSearcher::agent(int sketch) {
  const auto found = agents_.find(sketch);
  if (found != agents_.end()) return found->second;
  const auto decisions = static_cast<int>(guide().space().decisions(sketch).size());
  return agents_.try_emplace(sketch, options_, decisions, guide().rng()).first->second;
}

PpoAgent::Walk PpoSearcher::walk(const space::Point& from, std::vector<space::Point>& visited) {
  const space::Space& space = guide().space();
  PpoAgent::Walk walk;
  std::vector<Scored> start = guide().rank({from});
  if (start.empty() || from.choices.empty()) return walk;
  const PpoAgent& own = agent(from.sketch);
  Scored at = std::move(start[0]);
  visited.push_back(at.point);
  for (int i = 0; i < options_.steps; ++i) {
    PpoStep step = own.act(space.encode(at.point), guide().rng());
    space::Point next = guide().part().hold(at.point);
    for (size_t d = 0; d < next.choices.size(); ++d)
      next.choices[d] = guide().part().moved(next, d, step.action[d]);
    std::vector<Scored> moved;
    if (space.legal(next)) moved = guide().rank({space.canonical(next)});
    // The gain in the logarithm of the time.
    step.reward = moved.empty() ? -kPenalty : at.log_seconds - moved[0].log_seconds;
    walk.steps.push_back(std::move(step));
    if (moved.empty()) continue;
    at = std::move(moved[0]);
    visited.push_back(at.point);
  }
  walk.end = space.encode(at.point);
  return walk;
}

void PpoSearcher::sample_adaptively(Batch& batch, int count, std::span<const Scored> visited) {
  // Points of other sketches have other decisions; the best one's sketch is sampled.
  const int sketch = visited[0].point.sketch;
  const double kept = std::ceil(options_.top * static_cast<double>(visited.size()));
  visited = visited.first(std::max<size_t>(static_cast<size_t>(kept), 1));
  std::vector<std::vector<float>> rows;
  std::vector<Scored> own;
  for (const Scored& scored : visited) {
    if (scored.point.sketch != sketch) continue;
    rows.push_back(guide().space().encode(scored.point));
    own.push_back(scored);
  }
  const Clusters clusters = adaptive_clusters(rows, options_.knee, guide().rng());
  std::vector<space::Point> chosen;
  bool repeated = false;
  for (const std::vector<float>& centre : clusters.centres) {
    const space::Point& point = own[nearest(rows, centre)].point;
    if (guide().proposals().fresh(point)) {
      chosen.push_back(point);
    } else {
      repeated = true;
    }
  }
  const space::Point mode = commonest(own, sketch);
  if (repeated && guide().space().legal(mode)) chosen.push_back(guide().space().canonical(mode));
  batch.add_best(guide().rank(std::move(chosen)), count);
}

void PpoSearcher::fill(Batch& batch, int count) {
  std::vector<space::Point> visited;
  std::map<int, std::vector<PpoAgent::Walk>> walks;
  for (const space::Point& from : chain_starts(guide(), options_.chains)) {
    PpoAgent::Walk made = walk(from, visited);
    if (!made.steps.empty()) walks[from.sketch].push_back(std::move(made));
  }
  for (const auto& [sketch, made] : walks) agent(sketch).learn(made, guide().rng());
  const std::vector<Scored> ranked = guide().rank(std::move(visited));
  if (ranked.empty()) return;
  const int before = batch.size();
  sample_adaptively(batch, count, ranked);
  batch.add_best(ranked, count - (batch.size() - before));
}

}  // namespace hone::search
