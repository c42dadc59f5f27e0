#include "hone/search/beam_searcher.h"

#include <algorithm>
#include <numeric>

namespace hone::search {

// First the default point of every sketch, then the fastest points in turns.
space::Point BeamSearcher::next_incumbent() {
  const space::Space& space = guide().space();
  const size_t turn = searches_++;
  if (turn < static_cast<size_t>(space.num_sketches()))
    return space.default_point(static_cast<int>(turn));
  const std::vector<MeasuredPoint>& measured = guide().measured();
  if (measured.empty() || guide().rng().chance(options_.random_completion))
    return guide().part().sample(guide().rng());
  return measured[turn % std::min(options_.incumbents, measured.size())].point;
}

std::vector<Scored> BeamSearcher::search(const space::Point& incumbent) {
  std::vector<size_t> order(incumbent.choices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  guide().rng().shuffle(order);  // which decisions are fixed first matters: not always the same
  std::vector<space::Point> beam = {incumbent}, visited = {incumbent};
  for (const size_t d : order) {
    std::vector<space::Point> wider;
    for (const space::Point& point : beam) {
      for (const int option : guide().part().options(incumbent.sketch, d)) {
        wider.push_back(point);
        wider.back().choices[d] = option;
      }
    }
    std::vector<Scored> ranked = guide().rank(std::move(wider));
    if (ranked.size() > options_.width) ranked.resize(options_.width);
    if (ranked.empty()) break;  // the incumbent itself is illegal
    beam.clear();
    for (Scored& scored : ranked) {
      visited.push_back(scored.point);
      beam.push_back(std::move(scored.point));
    }
  }
  return guide().rank(std::move(visited));
}

void BeamSearcher::fill(Batch& batch, int count) {
  // The first batch looks at every sketch; later ones need a second search where the first found
  // only known points.
  const int sketches = guide().space().num_sketches();
  const int searches = std::max(2, sketches);
  for (int i = 0, left = count; i < searches && left > 0; ++i) {
    const int share = (left + searches - i - 1) / (searches - i);
    left -= batch.add_best(search(next_incumbent()), share);
  }
}

}  // namespace hone::search
