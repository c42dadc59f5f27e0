#include "hone/search/annealing_searcher.h"

#include <algorithm>
#include <cmath>

namespace hone::search {

// Scores have changed since the last batch, and the worst chains follow what turned out well.
void AnnealingSearcher::place_chains() {
  std::vector<space::Point> points;
  for (const Scored& chain : chains_) points.push_back(chain.point);
  if (points.empty()) points.push_back(guide().space().default_point());
  while (points.size() < options_.chains) points.push_back(guide().part().sample(guide().rng()));
  chains_ = guide().rank(std::move(points));

  const auto elite =
      static_cast<size_t>(options_.elite_share * static_cast<double>(chains_.size()));
  std::vector<space::Point> best;
  for (const MeasuredPoint& measured : guide().measured()) {
    if (best.size() == elite) break;
    best.push_back(measured.point);
  }
  std::vector<Scored> moved = guide().rank(std::move(best));
  for (size_t i = 0; i < moved.size(); ++i) chains_[chains_.size() - 1 - i] = std::move(moved[i]);
}

void AnnealingSearcher::fill(Batch& batch, int count) {
  place_chains();
  if (chains_.empty()) return;
  Rng& rng = guide().rng();
  const double temperature =
      std::max(options_.coldest,
               options_.temperature *
                   std::pow(options_.cooling, static_cast<double>(guide().observations())));
  std::vector<space::Point> visited;
  for (const Scored& chain : chains_) visited.push_back(chain.point);
  for (int step = 0; step < options_.steps; ++step) {
    for (Scored& chain : chains_) {
      // One at a time: a chain that did not move must not see its next step's score.
      std::vector<Scored> next = guide().rank({guide().part().mutate(chain.point, rng)});
      if (next.empty()) continue;
      const double loss = next[0].score - chain.score;
      visited.push_back(next[0].point);
      if (loss <= 0 || rng.chance(std::exp(-loss / temperature))) chain = std::move(next[0]);
    }
  }
  batch.add_best(guide().rank(std::move(visited)), count);
}

}  // namespace hone::search
