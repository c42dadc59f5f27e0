// session/schedule_sources.h - where schedules come from without measuring: the records of the
// model's tasks and of other tasks in the database, the records that come with Hone, and the cost
// model's predictions.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "hone/db/store.h"
#include "hone/search/transfer.h"
#include "hone/session/network_choices.h"

namespace hone {

// A transferred schedule was the fastest of many that were measured. The schedule with the best
// prediction is the lowest of thousands of predictions, hence the one for which the model's error
// is most favourable. So the transferred one is used if its prediction is at most this factor times
// the other's.
inline constexpr double kTransferTrust = 1.05;
// Returns kTransferTrust for these two schedules of a task, or 1 if only the predicted one has what
// --accuracy fast alone allows: then the transferred one may never have been measured against the
// like.
[[nodiscard]] double transfer_trust(const schedule::Steps& transferred,
                                    const schedule::Steps& predicted);

// Pairs of a task's key and a schedule's text that failed on a device: the kernel computed
// something else, or it did not run in two trials. Such schedules are not used there, however good
// they are on another device.
using FailedSchedules = std::set<std::pair<uint64_t, std::string>>;

struct ScheduleSources {
  db::Store* store = nullptr;  // may be null
  FailedSchedules failed;      // failed schedules of all tasks, if failures_loaded
  // The records that come with Hone, of all tasks that are not excluded.
  std::vector<trial::Record> shipped;
  // The choices for this network. Without them (clear()), schedules are the fastest alone.
  NetworkChoices choices;
  search::TransferPool pool;  // filled by load_other_tasks()
  search::Nearest nearest;    // which of its records are tried
  bool failures_loaded = false, others_loaded = false;
};

// Returns whether records of the model with this name are ignored.
[[nodiscard]] bool excludes(const CompileOptions& options, const std::string& model);
// Returns the keys of all tasks with a record of an excluded model. All records of these tasks are
// ignored, whichever model they were measured for.
[[nodiscard]] Result<std::set<uint64_t>> excluded_tasks(Session& session,
                                                        const CompileOptions& options);
// Returns what the session's store, if it has one, and the shipped records know about the model's
// own tasks, without excluded ones. The result is empty if no database is to be used.
[[nodiscard]] Result<ScheduleSources> load_sources(const ModelTasks& model,
                                                   const CompileOptions& options);

// Adds the records of other tasks, unless CompileOptions::transfer is "off".
[[nodiscard]] Status load_other_tasks(const ModelTasks& model, const CompileOptions& options,
                                      ScheduleSources& sources);

// Removes what was measured on another kind of device: schedules of GPUs give loops to threads,
// those of CPUs do not.
void keep_kind(search::TransferPool& pool, target::Kind kind);

// Reads the network's choices again, and the failed schedules if they were read before. Tuning may
// have found that some schedules are wrong.
[[nodiscard]] Status reload_sources(const ModelTasks& model, ScheduleSources& sources);

struct ChosenSchedule {
  schedule::Steps steps;
  std::string source, from;      // as in TaskSummary
  double seconds = 0;            // from the record; 0 if there is none
  double predicted_seconds = 0;  // 0 if it was not predicted
  bool untuned = false;          // the task has several schedules, but no record of its own
  // Sets this schedule in a task's summary.
  void describe(TaskSummary& summary) const;
};
// Returns the schedule of a record if it still applies to the task.
[[nodiscard]] std::optional<ChosenSchedule> applicable_schedule(const compute::Dag& dag,
                                                                const trial::Record& record,
                                                                std::string_view source);
// Returns the schedule of the best record of exactly this task on this device that still applies:
// one that was measured here, else the fastest shipped one; nothing if there is none. If
// `algorithm` is not empty, only its records count; else a schedule that the network uses instead
// (NetworkChoices) replaces the record's. If `stale` is not null, the number of records that do not
// apply any more is added to it.
[[nodiscard]] Result<std::optional<ChosenSchedule>> stored_schedule(
    const ModelTasks& model, size_t group, const ScheduleSources& sources,
    const std::string& algorithm = "", int* stale = nullptr);
// Returns the accuracy of the space in which a group without a record gets its schedule.
[[nodiscard]] trial::Accuracy unmeasured_accuracy(const ModelTasks& model, size_t group);
// Returns the share by which a schedule must be predicted to be faster to take another one's place.
[[nodiscard]] double unmeasured_margin(const target::Target& target);
// Returns the schedule with the best prediction, or that of another task if its prediction is at
// most transfer_trust() times as long. If `rivals` is not null, it receives the other schedules
// that the session's refiner, which must exist, is to compare with it.
[[nodiscard]] Result<ChosenSchedule> unmeasured_schedule(
    const ModelTasks& model, size_t group, const ScheduleSources& sources,
    const CompileOptions& options, std::vector<ChosenSchedule>* rivals = nullptr);
// Returns stored_schedule() of each group, or unmeasured_schedule() if there is none, which the
// session's refiner may replace by another one. Updates the summaries. With require_tuned, a group
// without a record of its own is an error.
[[nodiscard]] Result<std::vector<schedule::Steps>> choose_schedules(ModelTasks& model,
                                                                    ScheduleSources& sources,
                                                                    const CompileOptions& options);

}  // namespace hone
