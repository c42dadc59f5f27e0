#include "hone/search/mixed_searcher.h"

#include <algorithm>
#include <cmath>

namespace hone::search {

MixedSearcher::MixedSearcher(const std::shared_ptr<Guide>& guide, const MixedOptions& options)
    : GuidedSearcher(guide),
      options_(options),
      evolution_(guide, {.descent_share = 0}),
      descent_(guide, {.descent_after = options.descent_after}) {}

void MixedSearcher::update(Credit& credit) {
  credit.gained *= options_.memory;
  credit.spent *= options_.memory;
  std::erase_if(credit.pending, [&](const space::Point& point) {
    const double* seconds = guide().seconds_of(point);
    if (seconds == nullptr) return false;
    credit.spent += 1;
    if (best_ > 0 && *seconds < best_) credit.gained += std::log(best_ / *seconds);
    return true;
  });
}

int MixedSearcher::fill_from(Credit& credit, Batch& batch, int count) {
  const int before = batch.size();
  if (&credit == &descended_)
    descent_.descend(batch, count);
  else
    evolution_.fill(batch, count);
  credit.pending.insert(credit.pending.end(), batch.points().begin() + before,
                        batch.points().end());
  return batch.size() - before;
}

std::vector<Scored> MixedSearcher::promising_defaults() {
  std::vector<Scored> ranked = guide().rank(guide().space().default_points());
  if (ranked.empty()) return ranked;
  const double limit = ranked.front().log_seconds + std::log(options_.hopeless);
  std::erase_if(ranked, [limit](const Scored& scored) { return scored.log_seconds > limit; });
  return ranked;
}

void MixedSearcher::fill(Batch& batch, int count) {
  int left = count;
  if (!started_) {
    started_ = true;
    left -= batch.add_best(promising_defaults(), left);
    left -= batch.add_best(
        guide().climbed_samples(options_.samples, options_.starts, options_.climb), left);
  }
  update(evolved_);
  update(descended_);
  if (!guide().measured().empty()) best_ = guide().measured().front().seconds;
  const double share = std::clamp(descended_.rate() / (descended_.rate() + evolved_.rate()),
                                  options_.least_share, 1 - options_.least_share);
  left -= fill_from(descended_, batch, static_cast<int>(std::lround(share * left)));
  if (left > 0) fill_from(evolved_, batch, left);
}

}  // namespace hone::search
