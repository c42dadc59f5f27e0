#include "hone/search/guided_searcher.h"

#include <algorithm>

namespace hone::search {
namespace {

constexpr double kRandomShare = 0.08;  // of each batch: what no model would have said
constexpr int kMisses = 200;           // samples in a row that were spent already: the space is dry

}  // namespace

bool Batch::add(const space::Point& point) {
  if (room() <= 0 || !proposals_.take(point)) return false;
  points_.push_back(point);
  return true;
}

int Batch::add_best(std::span<const Scored> ranked, int count) {
  int added = 0;
  for (const Scored& scored : ranked) {
    if (added >= count || room() <= 0) break;
    added += add(scored.point);
  }
  return added;
}

std::vector<space::Point> GuidedSearcher::propose(int n) {
  Batch batch(guide_->proposals(), n);
  if (n <= 0) return batch.take();
  batch.add(guide_->space().default_point());
  guide_->fit();
  int random = 0;
  for (int i = 0; i < n; ++i) random += guide_->rng().chance(kRandomShare);
  fill(batch, std::max(n - random, 1) - batch.size());
  for (int misses = 0; batch.room() > 0 && misses < kMisses;)
    misses += !batch.add(guide_->part().sample(guide_->rng()));
  return batch.take();
}

}  // namespace hone::search
