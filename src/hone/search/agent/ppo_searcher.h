// search/agent/ppo_searcher.h - search by proximal policy optimisation and adaptive sampling
// (Chameleon, ICLR 2020), the baseline by reinforcement learning that MetaTune is compared with.
// Before a batch, chains of schedules walk by the policy, which learns from predicted times. The
// visited schedules are clustered, and those nearest to the centres are proposed; where such a
// schedule was measured before, one that has the commonest option of each decision takes its place.
// The rest of a batch are the best predicted of those visited.
#pragma once

#include <map>

#include "hone/search/agent/ppo_agent.h"
#include "hone/search/guided_searcher.h"

namespace hone::search {

// Returns the starts of the chains: a half of them are the fastest measured points and one default
// point or, while fewer are measured, several, the best predicted first. The others are samples.
[[nodiscard]] std::vector<space::Point> chain_starts(Guide& guide, int chains);

class PpoSearcher : public GuidedSearcher {
 public:
  PpoSearcher(std::shared_ptr<Guide> guide, const PpoOptions& options)
      : GuidedSearcher(std::move(guide)), options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "ppo"; }
  void fill(Batch& batch, int count) override;

 private:
  [[nodiscard]] PpoAgent& agent(int sketch);
  // Walks from a point and adds what it visits.
  [[nodiscard]] PpoAgent::Walk walk(const space::Point& from, std::vector<space::Point>& visited);
  void sample_adaptively(Batch& batch, int count, std::span<const Scored> visited);

  PpoOptions options_;
  std::map<int, PpoAgent> agents_;  // by sketch
};

}  // namespace hone::search
