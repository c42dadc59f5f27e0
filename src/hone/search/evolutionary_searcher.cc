#include "hone/search/evolutionary_searcher.h"

#include <algorithm>
#include <cmath>

namespace hone::search {
namespace {

constexpr size_t kElite = 24;          // measured points among the parents
constexpr size_t kDescentCentres = 3;  // measured points whose neighbours are tried

}  // namespace

const space::Point& EvolutionarySearcher::tournament(std::span<const Scored> parents) {
  const auto n = static_cast<int64_t>(parents.size());
  Rng& rng = guide().rng();
  return parents[static_cast<size_t>(std::min(rng.below(n), rng.below(n)))].point;
}

std::vector<Scored> EvolutionarySearcher::evolve() {
  const space::Subspace& part = guide().part();
  Rng& rng = guide().rng();
  std::vector<space::Point> points = std::move(survivors_);
  survivors_.clear();
  const int samples = points.empty() ? options_.first_population : options_.population / 2;
  points.push_back(guide().space().default_point());
  const std::vector<MeasuredPoint>& measured = guide().measured();
  for (size_t i = 0; i < std::min(kElite, measured.size()); ++i)
    points.push_back(measured[i].point);
  for (int i = 0; i < samples; ++i) points.push_back(part.sample(rng));

  std::unordered_set<uint64_t> present;
  std::vector<Scored> ranked;
  const auto absorb = [&](std::vector<space::Point> fresh) {
    std::erase_if(fresh,
                  [&](const space::Point& p) { return !present.insert(space::hash(p)).second; });
    std::vector<Scored> more = guide().rank(std::move(fresh));
    const auto middle = static_cast<std::ptrdiff_t>(ranked.size());
    ranked.insert(ranked.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
    std::inplace_merge(ranked.begin(), ranked.begin() + middle, ranked.end(),
                       [](const Scored& a, const Scored& b) { return a.score < b.score; });
  };
  absorb(std::move(points));
  const auto population = static_cast<size_t>(options_.population);
  for (int generation = 0; generation < options_.generations && !ranked.empty(); ++generation) {
    const std::span<const Scored> parents(ranked.data(), std::min(population, ranked.size()));
    std::vector<space::Point> children;
    for (size_t i = 0; i < population; ++i) {
      const space::Point& parent = tournament(parents);
      children.push_back(rng.chance(options_.crossover)
                             ? part.crossover(parent, tournament(parents), rng)
                             : part.mutate(parent, rng));
    }
    absorb(std::move(children));
  }
  for (size_t i = 0; i < std::min(population / 2, ranked.size()); ++i)
    survivors_.push_back(ranked[i].point);
  return ranked;
}

std::vector<Scored> EvolutionarySearcher::descend() {
  std::vector<space::Point> points;
  const std::vector<MeasuredPoint>& measured = guide().measured();
  for (size_t i = 0; i < std::min(kDescentCentres, measured.size()); ++i) {
    if (measured[i].seconds > 1.2 * measured[0].seconds) break;
    for (space::Point& point : guide().part().neighbours(measured[i].point))
      points.push_back(std::move(point));
  }
  return guide().rank(std::move(points));
}

void EvolutionarySearcher::fill(Batch& batch, int count) {
  int left = count;
  if (options_.descent_share > 0 && guide().observations() >= options_.descent_after) {
    const int share = static_cast<int>(std::lround(options_.descent_share * count));
    left -= batch.add_best(descend(), share);
  }
  if (left > 0) batch.add_best(evolve(), left);
}

}  // namespace hone::search
