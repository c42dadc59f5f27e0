// search/random_searcher.h - uniform samples of the space and nothing else: the baseline for every
// other strategy.
#pragma once

#include "hone/search/proposals.h"
#include "hone/search/searcher.h"
#include "hone/space/subspace.h"

namespace hone::search {

class RandomSearcher : public Searcher {
 public:
  // `part` is what is sampled; null: the whole space.
  explicit RandomSearcher(const SearchTask& task, const space::Subspace* part = nullptr);
  [[nodiscard]] std::string_view name() const override { return "random"; }
  [[nodiscard]] std::vector<space::Point> propose(int n) override;
  void observe(std::span<const space::Point> points, std::span<const double> seconds) override;

 private:
  space::Subspace part_;
  Proposals proposals_;
  Rng rng_;
};

}  // namespace hone::search
