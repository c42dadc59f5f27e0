#include "hone/search/random_searcher.h"

namespace hone::search {

RandomSearcher::RandomSearcher(const SearchTask& task, const space::Subspace* part)
    : part_(part ? *part : space::Subspace(*task.space)),
      proposals_(*task.space),
      rng_(hash_combine(task.seed, task.key)) {}

std::vector<space::Point> RandomSearcher::propose(int n) {
  std::vector<space::Point> points;
  // A small space runs dry: then most samples are known already.
  for (int misses = 0; static_cast<int>(points.size()) < n && misses < 200 + 20 * n;) {
    space::Point point = part_.sample(rng_);
    if (proposals_.take(point))
      points.push_back(std::move(point));
    else
      ++misses;
  }
  return points;
}

void RandomSearcher::observe(std::span<const space::Point> points, std::span<const double>) {
  for (const space::Point& point : points) proposals_.take(point);
}

}  // namespace hone::search
