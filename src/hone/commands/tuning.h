// commands/tuning.h - a run of tune(): the untuned model, the search, the choice among what was
// measured, the library.
#pragma once

#include <optional>

#include "hone/base/file.h"
#include "hone/commands/check/checked_writer.h"
#include "hone/commands/time_plan.h"
#include "hone/commands/tune.h"
#include "hone/commands/tune_phases.h"
#include "hone/commands/tuned_schedules.h"
#include "hone/search/code_filter.h"
#include "hone/search/policy.h"
#include "hone/session/assemble_limited.h"
#include "hone/session/schedule_sources.h"

namespace hone {

// One run of tune(), step by step. What it is made of must outlive it; `start` is when the budget
// began, in the seconds of the real clock.
class Tuning {
 public:
  Tuning(Session& session, graph::Graph graph, const std::string& output,
         const TuneOptions& options, double start, std::unique_ptr<search::Policy> policy,
         cost::CostModel& guide, PhaseClock& phases);
  Result<TuneSummary> run();

 private:
  [[nodiscard]] Status write_and_plan();
  [[nodiscard]] TimeDemand demand() const;
  [[nodiscard]] Result<Written> write_untuned();
  [[nodiscard]] Status check_movable();
  [[nodiscard]] Status search_schedules();
  [[nodiscard]] std::vector<search::TuneTask> tasks_to_tune() const;
  [[nodiscard]] search::TuneLoopOptions loop_options(int64_t packed_bytes);
  void ask_store_again();
  void summarise_search();
  [[nodiscard]] Status choose_schedules();
  void compare_kernels();
  void measure_at_sizes();
  [[nodiscard]] Result<Written> write_faster();
  [[nodiscard]] CheckedWriter::Remake remake();
  [[nodiscard]] Status compare_models();
  void give_up_comparing(const Status& why);
  void remember(const ModelTasks& model, std::span<const schedule::Steps> schedules);
  // The tuned model is compared with the untuned one.
  [[nodiscard]] bool compares() const { return summary_.not_compared.empty(); }
  // Kernels have other schedules for smaller sizes.
  [[nodiscard]] bool varies() const {
    return untuned_.model.tasks.sizes >= 0 && has_variants(untuned_.model, plain_);
  }
  // The partition that the measured times speak for.
  [[nodiscard]] ModelTasks& chosen() { return partition_ ? *partition_ : untuned_.model; }
  void announce(std::string_view stage);
  void wait_for_cores(double until);
  [[nodiscard]] std::string untuned_library() const { return folder_->file("untuned.so"); }

  Session& session_;
  graph::Graph graph_;  // as imported
  const std::string& output_;
  const TuneOptions& options_;
  Clock& clock_ = real_clock();
  const double start_, end_;
  std::unique_ptr<search::Policy> policy_;
  cost::CostModel& guide_;
  std::unique_ptr<search::CodeFilter> filter_;  // null: all candidates are measured
  PhaseClock& phases_;
  std::optional<measure::CoreWatch> watch_;
  measure::HostMonitor load_{session_.machine().conditions().load()};
  std::unique_ptr<measure::Runner> runner_;
  std::optional<TempDir> folder_;
  const bool is_static_;
  CompileOptions compile_;  // without the passes that were found wrong
  CompileOptions plain_;    // for what is measured: a shared library, whatever is wanted
  CheckedWriter writer_;

  Untuned untuned_;
  TimePlan plan_;

  TuneProgress progress_;  // last told
  search::TuneResult tuned_;
  TunedByKey tuned_by_key_;
  std::optional<ModelTasks> partition_;  // if measured times may say otherwise than predicted ones
  std::vector<schedule::Steps> schedules_;      // by group of chosen()
  std::vector<TaskSummary> untuned_summaries_;  // by group of the untuned model
  TuneSummary summary_;
};

}  // namespace hone
