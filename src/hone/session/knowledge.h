// knowledge.h - what is known without measuring: the database, the schedules of other tasks in it,
// and those that come with Hone.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "hone/db/store.h"
#include "hone/search/transfer.h"
#include "hone/session/network_choices.h"

namespace hone {

// A transferred schedule was the fastest of many that were measured; the best predicted is the
// lowest of thousands of predictions, hence the one about which the model errs most in its favour.
// So the former is taken if it looks slower by no more than this factor.
inline constexpr double kTransferTrust = 1.05;

// Schedules of tasks, as text, that failed on a device: they compute something else, or twice they
// did not run. What another device found good is not taken on trust there.
using FailedSchedules = std::set<std::pair<uint64_t, std::string>>;

struct Knowledge {
  db::Store* store = nullptr;          // may be null
  FailedSchedules failed;              // of any task, if asked_failed
  std::vector<trial::Record> shipped;  // the records that come with Hone, of any task
  NetworkChoices choices;              // of the model; clear() for what is the fastest alone
  search::TransferPool pool;           // of learn_from_others()
  bool asked_failed = false, asked_others = false;
};

// Whether what was learned from a model of that name counts as unknown.
[[nodiscard]] bool excludes(const CompileOptions& options, const std::string& model);
// Every task that one of the excluded models has, whoever measured it.
[[nodiscard]] Result<std::set<uint64_t>> forgotten_tasks(Session& session,
                                                         const CompileOptions& options);
// What the session's store, if it has one, and the shipped records say of the model's own tasks,
// without what is forgotten: nothing if no database is to be used.
[[nodiscard]] Result<Knowledge> learn(const ModelTasks& model, const CompileOptions& options);

// Adds what they say of other tasks, if anything may be transferred.
[[nodiscard]] Status learn_from_others(const ModelTasks& model, const CompileOptions& options,
                                       Knowledge& knowledge);

// Asks the store again for what failed, if learn() had to know, and for the network's choices: by
// tuning some may have been found wrong.
[[nodiscard]] Status learn_again(const ModelTasks& model, Knowledge& knowledge);

struct KnownSchedule {
  schedule::Steps steps;
  std::string source, from;      // as in TaskSummary
  double seconds = 0;            // stored; 0: unknown
  double predicted_seconds = 0;  // 0: nobody asked
  bool untuned = false;          // no record of its own although there is a choice
  // Says in a task's summary that this is its schedule.
  void describe(TaskSummary& summary) const;
};
// That of a record, if it still applies to the task.
[[nodiscard]] std::optional<KnownSchedule> if_it_applies(const compute::Dag& dag,
                                                         const trial::Record& record,
                                                         std::string_view source);
// The schedule of the record of exactly this task on this device (of that algorithm, if one is
// given) that still applies: one that was measured here, else the fastest shipped one; else null.
// Unless an algorithm is given, what the network has instead of it comes first.
// `stale`, if not null, counts those looked at that do not apply: another version's.
[[nodiscard]] Result<std::optional<KnownSchedule>> stored_schedule(
    const ModelTasks& model, size_t group, const Knowledge& knowledge,
    const std::string& algorithm = "", int* stale = nullptr);
// That of another task if it is predicted to be at least about as fast as the best predicted one,
// else the best predicted.
[[nodiscard]] Result<KnownSchedule> unmeasured_schedule(const ModelTasks& model, size_t group,
                                                        const Knowledge& knowledge,
                                                        const CompileOptions& options);
// For each group the former, else the latter. Fills in the summaries. With require_tuned, a group
// without a record of its own is an error.
[[nodiscard]] Result<std::vector<schedule::Steps>> known_schedules(ModelTasks& model,
                                                                   Knowledge& knowledge,
                                                                   const CompileOptions& options);

}  // namespace hone
