// train_policy.h - trains a search strategy off line on what earlier runs measured, as Fasor's deep
// Q-network is (section 7.2), so that a tune goes on from there (SearchOptions::policy_state).
// Messages name options as the command line does.
//
//   hone::train_policy("moves.state", {.db = "data.db"});
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/status.h"

namespace hone {

struct PolicyTrainSummary {
  int64_t tasks = 0, schedules = 0;  // numbers that it is trained on; a task for each thread count
  int planned_epochs = 0, epochs = 0;
  double seconds = 0;
};

struct PolicyTrainOptions {
  std::string db;                           // a database or data set
  std::string device = "host";              // as RepresentativeOptions::device
  std::set<uint64_t> only;                  // keys of tasks; empty: all
  std::vector<std::string> exclude_models;  // networks whose tasks are left out
  std::string strategy = "dqn";             // as SearchOptions::strategy: one that learns
  // The cost model that says how long schedules take that were not measured, as
  // AdvancedOptions::cost.
  std::string cost = "auto";
  std::string from;           // the file of a state to go on from; empty: none
  int epochs = 20;            // passes over the tasks (Fasor, section 7)
  double budget_seconds = 0;  // it stops after the task in which these are spent; 0: never
  uint64_t seed = 1;
  const std::atomic<bool>* interrupted = nullptr;  // ends it with Code::kCancelled; may be null
  std::function<void(const PolicyTrainSummary&)> on_epoch;
};

// Trains the strategy and writes its state to the file `output`. After an error it is as it was.
[[nodiscard]] HONE_API Result<PolicyTrainSummary> train_policy(const std::string& output,
                                                               const PolicyTrainOptions& options);

}  // namespace hone
