// search/agent/dqn_policy.h - the policy of search by a deep Q-network: one shared agent learns
// from the moves of all tasks, in the order in which they measure, and each task's searcher goes on
// with what it has learned.
#pragma once

#include <map>

#include "hone/search/agent/dqn_agent.h"
#include "hone/search/policy.h"

namespace hone::search {

class DqnPolicy : public Policy {
 public:
  DqnPolicy(std::string_view name, const DqnOptions& options) : Policy(name), options_(options) {}
  void observe(const SearchTask& task, std::span<const space::Point> points,
               std::span<const double> seconds) override;
  // Walks through the points that were measured and those beside them, which have the times that
  // the model predicts, corrected by the measured ones (Fasor, section 7.2). There is a walk for
  // every DqnOptions::candidates points. Where a measured point is beside it, a walk goes there;
  // elsewhere the agent chooses.
  void rehearse(const SearchTask& task, std::span<const space::Point> points,
                std::span<const double> seconds) override;
  [[nodiscard]] Result<std::string> save() const override;
  [[nodiscard]] Status load(std::string_view state) override;

 private:
  [[nodiscard]] std::unique_ptr<Searcher> make(const SearchTask& task,
                                               const space::Subspace* part) override;
  // Returns the shared agent, which is made for the kind of the first task's device.
  [[nodiscard]] DqnAgent& shared(target::Kind kind);

  DqnOptions options_;
  std::map<target::Kind, DqnAgent> shared_;
  std::map<uint64_t, std::weak_ptr<DqnAgent>> agents_;  // by task key
  Rng rng_{1};
};

[[nodiscard]] Result<std::unique_ptr<Policy>> make_dqn_policy(std::string_view name,
                                                              std::string_view options);
[[nodiscard]] std::vector<std::string> dqn_policy_help();

}  // namespace hone::search
