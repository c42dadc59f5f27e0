// search/agent/dqn_searcher.h - search by a deep Q-network (Fasor, section 6.2): before a batch the
// agent walks from a good schedule through 64 others by moves of one decision to an adjacent
// option, learns from what the cost model says of each, and proposes the best of them.
#pragma once

#include "hone/search/agent/dqn_agent.h"
#include "hone/search/guided_searcher.h"

namespace hone::search {

class DqnSearcher : public GuidedSearcher {
 public:
  DqnSearcher(std::shared_ptr<Guide> guide, const DqnOptions& options,
              std::shared_ptr<DqnAgent> agent)
      : GuidedSearcher(std::move(guide)), options_(options), agent_(std::move(agent)) {}
  [[nodiscard]] std::string_view name() const override { return "dqn"; }
  void fill(Batch& batch, int count) override;

 private:
  [[nodiscard]] space::Point start();
  void walk(std::vector<space::Point>& visited);

  DqnOptions options_;
  std::shared_ptr<DqnAgent> agent_;
};

}  // namespace hone::search
