#include "hone/commands/tuning.h"

#include <algorithm>
#include <filesystem>

#include "hone/base/log.h"
#include "hone/commands/find_limits.h"
#include "hone/commands/in_model.h"
#include "hone/commands/measure_sizes.h"
#include "hone/commands/task_programs.h"
#include "hone/commands/tune_mode.h"
#include "hone/db/registry.h"
#include "hone/db/trial_info.h"
#include "hone/machine/local.h"
#include "hone/search/policy_state.h"
#include "hone/session/static_model.h"
#include "hone/session/write_model.h"
#include "hone/trial/statistics.h"

namespace hone {
namespace {

// Returns the sum over the tasks whose times are known.
double seconds_of_a_run(const ModelTasks& model) {
  double sum = 0;
  for (const TaskSummary& task : model.summaries) sum += task.multiplicity * task.known_seconds();
  return sum;
}

CheckPolicy check_policy(const TuneOptions& options) {
  using When = CheckPolicy::When;
  const CheckSeconds seconds = check_seconds(options.search.budget_seconds);
  return {.when = options.compile.library.check.value_or(true) ? When::kAlways : When::kNever,
          .more_seconds = seconds.more,
          .most_seconds = seconds.most,
          .ends_early = true};
}

}  // namespace

Tuning::Tuning(Session& session, graph::Graph graph, const std::string& output,
               const TuneOptions& options, double start, std::unique_ptr<search::Policy> policy,
               cost::CostModel& guide, PhaseClock& phases)
    : session_(session),
      graph_(std::move(graph)),
      output_(output),
      options_(options),
      start_(start),
      end_(start + options.search.budget_seconds),
      policy_(std::move(policy)),
      guide_(guide),
      phases_(phases),
      is_static_(is_static_library(output, options.compile)),
      compile_(options.compile),
      plain_(options.compile),
      writer_(graph_, check_policy(options), options.interrupted) {
  plain_.library.header = false;
  plain_.library.static_library = false;
  plain_.library.sync = false;
}

TimeDemand Tuning::demand() const {
  return {.budget_seconds = options_.search.budget_seconds,
          .weight_bytes = constant_bytes(untuned_.model.tasks),
          .kernels = std::ssize(untuned_.schedules),
          .run_seconds = seconds_of_a_run(untuned_.model),
          .static_library = is_static_,
          .checks = options_.compile.library.check.value_or(true),
          .bounded_memory = plain_.target.max_memory > 0,
          .for_device = session_.target().kind() == target::Kind::kGpu,
          .times_no_models = session_.machine().models().unable(),
          .varies = varies()};
}

// The untuned model comes first: it says how long writing one takes, and what must be beaten.
Status Tuning::write_and_plan() {
  const TimeDemand demand = this->demand();
  plan_ = plan_time(demand);
  if (plan_.writes_untuned) {
    HONE_ASSIGN_OR_RETURN(const Written written, write_untuned());
    plan_ = plan_time(demand, UntunedWrite{.seconds = written.seconds,
                                           .assembly_seconds = written.assembly,
                                           .checked = writer_.summary().checked});
  }
  summary_.not_compared = plan_.not_compared;
  summary_.in_model.skipped = plan_.in_model_skipped;
  return ok_status();
}

// Among the temporary files or, where these have no room, beside the output.
Result<Written> Tuning::write_untuned() {
  announce("building the model as it is");
  Status first = ok_status();
  const std::string beside = std::filesystem::path(output_).parent_path();
  for (const std::string& parent : {temporary_folder(), beside.empty() ? "." : beside}) {
    Result<TempDir> folder = TempDir::create(".hone", parent);
    Status status = folder.status();
    if (folder.ok()) {
      folder_ = *std::move(folder);
      Result<Written> written =
          writer_.write({untuned_.model, untuned_.schedules, untuned_.sources}, untuned_library(),
                        plain_, remake());
      compile_.advanced.skip_passes = plain_.advanced.skip_passes;
      if (written.ok() || written.status().code() != Code::kIo) return written;
      status = written.status();
    }
    if (first.ok()) first = status;
  }
  return first;
}

// The model's tasks and those that may take their place.
std::vector<search::TuneTask> Tuning::tasks_to_tune() const {
  const ModelTasks& model = untuned_.model;
  std::vector<search::TuneTask> tasks;
  for (size_t g = 0; g < model.tasks.groups.size(); ++g)
    tasks.push_back(tune_task(model, g, untuned_.schedules[g]));
  for (const Alternative& other : model.alternatives) {
    const Result<space::Space>& space = other.task->space(model.accuracy());
    tasks.push_back({&other.task->dag(), other.task->key(), static_cast<double>(other.multiplicity),
                     "instead: " + other.task->kernel_class(), std::nullopt,
                     space.ok() ? std::optional(*space) : std::nullopt,
                     lowered_in(session_, other.task)});
  }
  return tasks;
}

search::TuneLoopOptions Tuning::loop_options(int64_t packed_bytes) {
  search::TuneLoopOptions loop;
  loop.context = task_context(untuned_.model, compile_.advanced.seed, packed_bytes);
  loop.context.model = &guide_;
  loop.context.policy = policy_.get();
  loop.context.nearest = untuned_.sources.nearest;
  loop.context.phases = &phases_;
  loop.context.filter = filter_.get();
  loop.runner = runner_.get();
  loop.cores = &*watch_;
  loop.host = &load_;
  loop.store = session_.store();
  loop.pool = &untuned_.sources.pool;
  loop.start = start_;
  loop.end = end_;
  loop.deadline = end_ - plan_.reserved_seconds;
  loop.batch = options_.search.batch;
  loop.max_trials = options_.search.max_trials;
  if (options_.search.mode == "quality") loop.patience = kQualityPatience;
  loop.overlap = options_.search.overlap;
  if (session_.machine().is_elsewhere()) {
    loop.compile_threads = machine::local().target().cpu().cores;
    if (!loop.overlap.has_value()) loop.overlap = true;
  }
  loop.roofline = session_.roofline();
  loop.interrupted = options_.interrupted;
  loop.on_progress = [this](const TuneProgress& progress) {
    progress_ = progress;
    if (options_.on_progress) options_.on_progress(progress);
  };
  if (options_.on_trial) {
    loop.on_records = [this](std::span<const trial::Record> records) {
      for (trial::Record record : records) options_.on_trial(db::info_of(std::move(record)));
    };
  }
  return loop;
}

Status Tuning::search_schedules() {
  HONE_RETURN_IF_ERROR(load_other_tasks(untuned_.model, compile_, untuned_.sources));
  HONE_ASSIGN_OR_RETURN(const int64_t packed, packed_bytes(untuned_.model, untuned_.schedules));
  const std::vector<search::TuneTask> tasks = tasks_to_tune();
  HONE_ASSIGN_OR_RETURN(tuned_, search::tune_tasks(tasks, loop_options(packed)));
  const std::vector<TaskPtr>& groups = untuned_.model.distinct;
  for (size_t i = 0; i < tasks.size(); ++i) {
    tuned_by_key_[tasks[i].key] = &tuned_.tasks[i];
    keep_programs(
        session_,
        i < groups.size() ? groups[i] : untuned_.model.alternatives[i - groups.size()].task,
        tuned_.tasks[i]);
  }
  if (const std::string& state = options_.search.policy_state; !state.empty())
    summary_.policy_status = search::save_policy_state(state, session_.target(), *policy_);
  ask_store_again();
  summarise_search();
  return ok_status();
}

// The store is read again, as others may have written to it meanwhile. After a failure it is not
// asked any more.
void Tuning::ask_store_again() {
  Status& store = summary_.store_status;
  store = tuned_.store_status;
  if (store.ok()) store = reload_sources(untuned_.model, untuned_.sources);
  if (store.ok()) return;
  log_warning("nothing more is kept, and no more is searched: {}", store.message());
  untuned_.sources.store = nullptr;
}

void Tuning::summarise_search() {
  summary_.trials = tuned_.trials;
  summary_.search_seconds = tuned_.seconds;
  summary_.compiled = tuned_.compiled;
  summary_.compile_seconds = tuned_.compile_seconds;
  summary_.cannot_run = tuned_.dropped.cannot_run;
  summary_.spilling = tuned_.dropped.spilling;
  summary_.scored = tuned_.filtered.predicted;
  summary_.filtered = tuned_.filtered.left_out;
  summary_.score_seconds = tuned_.filtered.seconds;
  for (const auto& [outcome, alike] : tuned_.failures)
    summary_.failures.push_back({std::string(outcome_name(outcome)), alike.count, alike.first});
  summary_.interrupted = tuned_.interrupted;
  // A model that computes something else is not what is to be beaten.
  const bool was_wrong = std::any_of(tuned_.tasks.begin(), tuned_.tasks.end(),
                                     [](const auto& task) { return task.untuned_is_wrong; });
  if (was_wrong && compares()) summary_.not_compared = "it computed something else before";
}

void Tuning::announce(std::string_view stage) {
  if (!options_.on_progress) return;
  const double now = clock_.now_seconds();
  progress_.stage = stage;
  progress_.task = -1;
  progress_.elapsed = now - start_;
  progress_.left = std::max(0.0, end_ - now);
  progress_.budget = options_.search.budget_seconds;
  options_.on_progress(progress_);
}

void Tuning::wait_for_cores(double until) {
  const InPhase waiting(&phases_, Phase::kWaiting);
  watch_->wait(until);
}

Status Tuning::choose_schedules() {
  const InPhase choosing(&phases_, Phase::kChoosing);
  if (!untuned_.model.alternatives.empty()) {  // their times are known now
    const auto measured = [&](uint64_t key) -> std::optional<double> {
      const auto task = tuned_by_key_.find(key);
      if (task == tuned_by_key_.end() || task->second->seconds <= 0) return std::nullopt;
      return task->second->seconds;
    };
    HONE_ASSIGN_OR_RETURN(partition_, divide_again(untuned_.model, compile_, measured));
  }
  untuned_summaries_ = untuned_.model.summaries;
  HONE_ASSIGN_OR_RETURN(schedules_, tuned_schedules(chosen(), untuned_, tuned_by_key_, compile_));
  return ok_status();
}

void Tuning::compare_kernels() {
  InModelSummary& in_model = summary_.in_model;
  if (tuned_.interrupted) in_model.skipped = "interrupted";
  if (!in_model.skipped.empty()) return;
  announce("comparing kernels inside the model");
  const double deadline =
      std::min(clock_.now_seconds() + plan_.in_model_seconds, end_ - plan_.finish_seconds);
  wait_for_cores(deadline - plan_.in_model_seconds / 2);
  const InModelOptions how = {deadline, compile_.advanced.seed, options_.interrupted};
  const int most = most_challengers(plan_, std::ssize(schedules_));
  const Status status = choose_in_model(chosen(), schedules_, tuned_by_key_, most, how, in_model);
  if (status.code() == Code::kCancelled) {
    in_model.skipped = "interrupted";
  } else if (!status.ok()) {
    in_model.skipped = status.message();
    log_warning("no kernels were compared inside the model: {}", status.message());
  }
}

// A failure is no error: the sizes that were not measured are predicted.
void Tuning::measure_at_sizes() {
  if (!varies()) return;
  SizesSummary& sizes = summary_.sizes;
  if (tuned_.interrupted) {
    sizes.skipped = "interrupted";
    return;
  }
  announce("measuring kernels at smaller sizes");
  const double deadline =
      std::min(clock_.now_seconds() + plan_.sizes_seconds, end_ - plan_.finish_seconds);
  wait_for_cores(deadline - plan_.sizes_seconds / 2);
  const Result<int64_t> packed = packed_bytes(chosen(), schedules_);
  search::TaskContext context =
      task_context(chosen(), compile_.advanced.seed, packed.ok() ? *packed : 0);
  MeasureSizesOptions how = {deadline, &context, runner_.get(), {}};
  how.keep = [this](std::span<const trial::Record> records) {
    if (session_.store() == nullptr || !summary_.store_status.ok()) return;
    summary_.store_status = session_.store()->add(records).status();
  };
  const Status status = measure_sizes(chosen(), schedules_, tuned_by_key_, compile_, how, sizes);
  if (status.ok()) return;
  sizes.skipped = status.message();
  log_warning("not all kernels were measured at smaller sizes: {}", status.message());
}

// Never worse: what was measured kernel by kernel must hold for the whole model.
Result<Written> Tuning::write_faster() {
  announce("writing the library");
  HONE_ASSIGN_OR_RETURN(
      const Written written,
      writer_.write({chosen(), schedules_, untuned_.sources}, output_, compile_, remake()));
  if (tuned_.interrupted && compares()) summary_.not_compared = "interrupted";
  if (compares()) HONE_RETURN_IF_ERROR(compare_models());
  if (!summary_.kept_untuned) return written;
  untuned_.model.summaries = std::move(untuned_summaries_);
  std::swap(summary_.model_seconds, summary_.untuned_model_seconds);
  return writer_.write({untuned_.model, untuned_.schedules, untuned_.sources}, output_, compile_,
                       remake());
}

// Tasks that the passes left out do not change keep what was measured of them.
CheckedWriter::Remake Tuning::remake() {
  return [this](const CompileOptions& with, LibraryParts& parts) -> Status {
    HONE_ASSIGN_OR_RETURN(Untuned made, make_untuned(session_, graph_, with));
    for (size_t g = 0; g < made.schedules.size(); ++g) {
      const auto task = tuned_by_key_.find(made.model.tasks.groups[g].key);
      if (task == tuned_by_key_.end() || task->second->seconds <= 0) continue;
      TaskSummary& line = made.model.summaries[g];
      line.source = "tuned", line.seconds = task->second->seconds;
      line.steps = schedule::to_string(task->second->steps);
      made.schedules[g] = task->second->steps;
    }
    parts.model = std::move(made.model);
    parts.sources = std::move(made.sources);
    parts.schedules = std::move(made.schedules);
    return ok_status();
  };
}

void Tuning::give_up_comparing(const Status& why) {
  summary_.not_compared = why.message();
  log_warning("the tuned model was not compared with the untuned one: {}", why.message());
}

Status Tuning::compare_models() {
  std::string tuned_library = output_;
  if (is_static_) {
    tuned_library = folder_->file("tuned.so");
    const Status status = write_model(chosen(), schedules_, tuned_library, plain_).status();
    if (!status.ok()) {
      give_up_comparing(status);
      return ok_status();
    }
  }
  wait_for_cores(end_ - kSpareSeconds - plan_.compare_seconds);
  const double left = end_ - clock_.now_seconds() - kSpareSeconds;
  if (left <= kLeastCompareSeconds) {
    summary_.not_compared = "there was no time left";
    return ok_status();
  }
  announce("comparing the whole model, tuned and as it was");
  const InPhase measuring(&phases_, Phase::kMeasuring);
  const Result<std::vector<std::vector<double>>> times = session_.machine().models().time_in_turns(
      {tuned_library, untuned_library()}, session_.threads(),
      std::min(plan_.compare_seconds, left));
  if (!times.ok()) {
    give_up_comparing(times.status());
    return ok_status();
  }
  const trial::Duel duel = {.challenger = (*times)[1], .incumbent = (*times)[0]};
  summary_.model_seconds = trial::median(duel.incumbent);
  summary_.untuned_model_seconds = trial::median(duel.challenger);
  summary_.kept_untuned = winner({&duel, 1}) == 0;  // else noise would undo the tuning
  return ok_status();
}

// So that who builds the network from the same store gets the same library. What had to be changed
// to fit a bound of memory is not what is best without it.
void Tuning::remember(const ModelTasks& model, std::span<const schedule::Steps> schedules) {
  const bool compared = summary_.in_model.skipped.empty() || summary_.kept_untuned;
  if (session_.store() == nullptr || !summary_.store_status.ok() || plain_.target.max_memory > 0 ||
      !compared)
    return;
  // A partition that lost the comparison is not remembered: the measurements decide against it.
  if (partition_ && summary_.kept_untuned && network_key(model) != network_key(*partition_)) return;
  const Status status = remember_choices(model, schedules, *session_.store());
  if (!status.ok())
    log_warning("which schedules are the fastest inside the model is not kept: {}",
                status.message());
}

// Roles that are named are known before anything is measured or stored.
Status Tuning::check_movable() {
  if (!policy_->movable().names_roles()) return ok_status();
  HONE_ASSIGN_OR_RETURN(const ModelTasks model, make_tasks(session_, graph_, compile_));
  return policy_->movable().check_names(spaces_of(model));
}

Result<TuneSummary> Tuning::run() {
  if (!options_.search.filter.empty()) {
    HONE_ASSIGN_OR_RETURN(filter_, make_code_filter(options_.search.filter, session_.target()));
  }
  HONE_RETURN_IF_ERROR(check_movable());
  {
    const InPhase measuring(&phases_, Phase::kMeasuring);
    find_limits(session_.machine(), options_,
                [this] { announce("measuring the machine's limits"); });
  }
  HONE_ASSIGN_OR_RETURN(untuned_, make_untuned(session_, graph_, compile_));
  HONE_ASSIGN_OR_RETURN(
      runner_, session_.machine().make_runner(hooks_of(compile_).worker, session_.target()));
  // Whoever tuned may look at the database, also if nothing was stored.
  if (session_.store() != nullptr)
    HONE_RETURN_IF_ERROR(db::open_store(compile_.records.db).status());
  watch_.emplace(session_.machine().watch_cores(
      session_.threads(),
      {measure::kUsualPatience * options_.search.budget_seconds, options_.interrupted}));
  HONE_RETURN_IF_ERROR(write_and_plan());
  HONE_RETURN_IF_ERROR(search_schedules());
  HONE_RETURN_IF_ERROR(choose_schedules());
  compare_kernels();
  measure_at_sizes();
  HONE_ASSIGN_OR_RETURN(const Written written, write_faster());
  summary_.waited_seconds = watch_->waited();
  ModelTasks& model = summary_.kept_untuned ? untuned_.model : chosen();
  remember(model, summary_.kept_untuned ? untuned_.schedules : schedules_);
  writer_.warn();
  model.refined = untuned_.model.refined;
  if (options_.programs)
    summary_.programs =
        programs_of(model, summary_.kept_untuned ? untuned_.schedules : schedules_, tuned_by_key_);
  summary_.compile = summary_of(model, written, start_);
  summary_.compile.check = writer_.summary();
  summary_.spent = tune_seconds(phases_, tuned_.overlapped_seconds);
  return std::move(summary_);
}

}  // namespace hone
