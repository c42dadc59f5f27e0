// search/annealing_searcher.h - parallel simulated annealing under a cost model (Kirkpatrick, 1983;
// as a search over schedules: AutoTVM, NeurIPS 2018). The chains live on from batch to batch while
// the temperature falls with what was measured; the best points visited are proposed.
#pragma once

#include "hone/search/guided_searcher.h"

namespace hone::search {

struct AnnealingOptions {
  size_t chains = 24;
  int steps = 20;            // steps of each chain before a batch
  double temperature = 0.5;  // at the start, in logarithms of seconds
  double cooling = 0.98;     // factor per measurement
  double coldest = 0.02;     // lowest temperature: differences this small are noise
  // Share of the chains, the worst, that move to measured points before a batch.
  double elite_share = 0.25;
};

class AnnealingSearcher : public GuidedSearcher {
 public:
  explicit AnnealingSearcher(std::shared_ptr<Guide> guide, const AnnealingOptions& options = {})
      : GuidedSearcher(std::move(guide)), options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "annealing"; }
  void fill(Batch& batch, int count) override;

 private:
  void place_chains();
  AnnealingOptions options_;
  std::vector<Scored> chains_;
};

}  // namespace hone::search
