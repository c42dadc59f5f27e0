// Tunes one task of a model that is open, as tune() does all of them.
#include "hone/base/log.h"
#include "hone/commands/measure_sizes.h"
#include "hone/commands/own/task_state.h"
#include "hone/commands/tune.h"
#include "hone/cost/registry.h"
#include "hone/db/registry.h"
#include "hone/db/store_to_add.h"
#include "hone/session/cost_models.h"
#include "hone/session/schedule_sources.h"
#include "hone/session/static_model.h"

namespace hone {
namespace {

Status check_alone(const CompileOptions& compile, const SearchOptions& search) {
  if (!(search.budget_seconds > 0))
    return invalid("the budget is {} seconds, expected more than 0", search.budget_seconds);
  if (!search.mode.empty() || !search.policy_state.empty())
    return invalid("a task is tuned alone, expected no option mode or policy_state");
  if (!compile.records.exclude_models.empty())
    return invalid("a task is tuned alone, expected no option exclude_models");
  return ok_status();
}

// A search of one task, with the parts that it does not share with others of the model.
class TaskSearch {
 public:
  TaskSearch(ModelWithTasks& model, size_t group, const TuneTaskOptions& options)
      : model_(model),
        session_(*model.session),
        group_(group),
        options_(options),
        start_(real_clock().now_seconds()),
        watch_(session_.machine().watch_cores(
            session_.threads(),
            {measure::kUsualPatience * options.search.budget_seconds, options.interrupted})) {}
  Result<TaskTuning> run();

 private:
  [[nodiscard]] Status open_store();
  [[nodiscard]] Status make_guide();
  [[nodiscard]] Result<search::TuneTask> task() const;
  [[nodiscard]] search::TuneLoopOptions loop();
  // Returns whether smaller runs need less of the task and schedules for them can be measured.
  [[nodiscard]] Result<bool> varies();
  [[nodiscard]] Status measure_sizes(const search::TunedTask& task, TaskTuning& tuning);
  [[nodiscard]] TaskTuning outcome(const search::TuneResult& result) const;

  ModelWithTasks& model_;
  Session& session_;
  const size_t group_;
  const TuneTaskOptions& options_;
  const double start_;
  measure::CoreWatch watch_;
  measure::HostMonitor load_{session_.machine().conditions().load()};
  std::unique_ptr<db::Store> store_;
  ScheduleSources sources_;
  std::unique_ptr<cost::CostModel> guide_;
  std::unique_ptr<search::Policy> policy_;
  std::unique_ptr<search::CodeFilter> filter_;
  TaskProgress progress_;   // last told
  double sizes_share_ = 0;  // of the budget for measuring at smaller sizes
};

// Opened anew for each search, so that a server may go and come back between two of them.
Status TaskSearch::open_store() {
  const CompileOptions& compile = model_.options;
  if (compile.records.use_db) {
    HONE_ASSIGN_OR_RETURN(store_, db::open_store_to_add(compile.records.db));
  }
  HONE_ASSIGN_OR_RETURN(sources_, load_sources(model_.tasks, compile));
  sources_.store = store_.get();
  return load_other_tasks(model_.tasks, compile, sources_);
}

Status TaskSearch::make_guide() {
  const SearchOptions& search = options_.search;
  const CompileOptions& compile = model_.options;
  const std::string& wanted = search.guide.empty() ? compile.advanced.cost : search.guide;
  const std::string name =
      wanted == cost::kAutoModel ? cost::default_model(session_.target()) : wanted;
  HONE_ASSIGN_OR_RETURN(guide_, make_cost_model({.cost = name,
                                                 .db = compile.records.db,
                                                 .use_db = compile.records.use_db,
                                                 .adapt = search.adapt}));
  HONE_RETURN_IF_ERROR(cost::check_knows(*guide_, name, session_.target()));
  HONE_ASSIGN_OR_RETURN(policy_, search::make_policy(search.strategy));
  HONE_RETURN_IF_ERROR(policy_->prepare(*guide_));
  HONE_RETURN_IF_ERROR(load_sensitivities(session_, compile, *policy_));
  if (!search.filter.empty()) {
    HONE_ASSIGN_OR_RETURN(filter_, make_code_filter(search.filter, session_.target()));
  }
  return ok_status();
}

Result<search::TuneTask> TaskSearch::task() const {
  HONE_ASSIGN_OR_RETURN(std::optional<ChosenSchedule> known,
                        stored_schedule(model_.tasks, group_, sources_));
  if (!known) {
    HONE_ASSIGN_OR_RETURN(known,
                          unmeasured_schedule(model_.tasks, group_, sources_, model_.options));
  }
  return tune_task(model_.tasks, group_, std::move(known->steps));
}

search::TuneLoopOptions TaskSearch::loop() {
  search::TuneLoopOptions loop;
  loop.context = model_.context;
  loop.context.model = guide_.get();
  loop.context.policy = policy_.get();
  loop.context.filter = filter_.get();
  loop.context.nearest = sources_.nearest;
  loop.runner = model_.runner.get();
  loop.cores = &watch_;
  loop.host = &load_;
  loop.store = store_.get();
  loop.pool = &sources_.pool;
  loop.roofline = session_.roofline();
  loop.start = start_;
  loop.deadline = start_ + (1 - sizes_share_) * options_.search.budget_seconds;
  loop.batch = options_.search.batch;
  loop.max_trials = options_.search.max_trials;
  loop.overlap = options_.search.overlap;
  loop.interrupted = options_.interrupted;
  loop.on_progress = [this](const TuneProgress& progress) {
    progress_ = progress.tasks.front();
    if (options_.on_progress) options_.on_progress(progress);
  };
  return loop;
}

TaskTuning TaskSearch::outcome(const search::TuneResult& result) const {
  const search::TunedTask& task = result.tasks.front();
  TaskTuning tuning{.trials = result.trials,
                    .seconds = task.seconds,
                    .untuned_seconds = task.untuned_seconds,
                    .bound_seconds = progress_.bound_seconds,
                    .search_seconds = result.seconds,
                    .finished = result.nothing_left || progress_.at_limit,
                    .interrupted = result.interrupted,
                    .failures = {},
                    .store_status = result.store_status};
  for (const auto& [outcome, alike] : result.failures)
    tuning.failures.push_back({std::string(outcome_name(outcome)), alike.count, alike.first});
  return tuning;
}

Result<bool> TaskSearch::varies() {
  ModelTasks& tasks = model_.tasks;
  if (tasks.tasks.sizes < 0 || store_ == nullptr || !has_variants(tasks, model_.options))
    return false;
  if (!model_.limited) {
    std::vector<schedule::Steps> schedules;
    for (size_t g = 0; g < tasks.distinct.size(); ++g) {
      const Result<space::Space>& space = tasks.space(g);
      schedules.push_back(space.ok() ? space->steps(space->default_point()) : schedule::Steps());
    }
    HONE_ASSIGN_OR_RETURN(model_.limited, limit_model(tasks, schedules));
  }
  const LimitedTasks& split = model_.limited->split;
  for (size_t g = 0; g < split.limits.size(); ++g)
    if (split.group_before[g] == group_ && split.limits[g].any()) return true;
  return false;
}

// Times that other workers stored meanwhile count.
Status TaskSearch::measure_sizes(const search::TunedTask& task, TaskTuning& tuning) {
  const uint64_t key = model_.tasks.tasks.groups[group_].key;
  SizeTimes times(session_.device(), session_.threads());
  HONE_RETURN_IF_ERROR(times.load(*store_, key));
  TaskAlone alone = {group_, task.steps, {}, &times.of(key)};
  for (const search::MeasuredSchedule& other : task.runners_up) alone.next.push_back(other.steps);
  CompileOptions compile = model_.options;
  compile.interrupted = options_.interrupted;
  MeasureSizesOptions how = {
      start_ + options_.search.budget_seconds, &model_.context, model_.runner.get(), {}};
  how.keep = [&](std::span<const trial::Record> records) {
    if (tuning.store_status.ok()) tuning.store_status = store_->add(records).status();
  };
  return measure_task_sizes(model_.tasks, *model_.limited, alone, compile, how);
}

Result<TaskTuning> TaskSearch::run() {
  HONE_RETURN_IF_ERROR(make_guide());
  HONE_RETURN_IF_ERROR(make_runner(model_));
  HONE_RETURN_IF_ERROR(open_store());
  HONE_ASSIGN_OR_RETURN(const bool varies, this->varies());
  sizes_share_ = varies ? kSizesShare : 0;
  HONE_ASSIGN_OR_RETURN(const search::TuneTask task, this->task());
  HONE_ASSIGN_OR_RETURN(const search::TuneResult result, search::tune_tasks({&task, 1}, loop()));
  TaskTuning tuning = outcome(result);
  if (varies && tuning.seconds > 0 && !tuning.interrupted && tuning.store_status.ok()) {
    // The tuned schedule is stored: sizes that could not be measured are no failure.
    const Status status = measure_sizes(result.tasks.front(), tuning);
    if (!status.ok()) log_warning("sizes were not measured: {}", status.message());
  }
  return tuning;
}

}  // namespace

Result<TaskTuning> ModelTask::tune(const TuneTaskOptions& options) const {
  if (!state_->opened)
    return invalid("a task of a search is tuned by the search, expected one of model_tasks()");
  ModelWithTasks& model = *state_->opened;
  HONE_RETURN_IF_ERROR(check_alone(model.options, options.search));
  const std::lock_guard lock(model.measuring);
  return TaskSearch(model, state_->group, options).run();
}

}  // namespace hone
