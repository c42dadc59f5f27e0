#include "hone/commands/transfer_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "hone/base/cancel.h"
#include "hone/base/clock.h"
#include "hone/db/registry.h"
#include "hone/search/measure_schedules.h"
#include "hone/search/prediction.h"
#include "hone/search/transfer_source.h"
#include "hone/search/tune_tasks.h"
#include "hone/session/fit_memory.h"
#include "hone/session/schedule_sources.h"

namespace hone {
namespace {

constexpr size_t kRanked = 3;       // sources that the heuristic proposes
constexpr int kBatch = 4;           // candidates of a task that are measured before it learns
constexpr double kNoHurry = 86400;  // seconds; trials are what is limited
constexpr int64_t kLongPause = 15;  // seconds between two records: nobody was tuning

struct Source {
  std::string name;
  double score = 0;
  search::TransferPool pool;
};

// A task whose best is known, and what is tried for it.
struct KnownTask {
  size_t group = 0;
  const space::Space* space = nullptr;
  schedule::Steps fallback, best;  // of compiling with an empty database; of the task's own record
  double predicted = 0;            // of the former
  std::vector<schedule::Steps> chosen;  // per source
};

// What a source led to for a task.
struct Choice {
  schedule::Steps steps;
  search::Offered offered;
};

class Reporter {
 public:
  Reporter(ModelTasks& model, const TransferReportOptions& options)
      : model_(model),
        store_(model.session->store()),
        options_(options),
        threads_(model.session->pool()) {}
  Result<TransferReport> run();

 private:
  Status find_tasks(const ScheduleSources& sources);
  Status find_full_tuning(db::TrialStore& store);
  Result<std::vector<Source>> make_sources(const search::TransferPool& everything);
  Result<Source> named_source(const std::string& name, const search::TransferPool& everything);
  Status try_source(const Source& source);
  [[nodiscard]] std::vector<search::SourceScore> rank(const search::TransferPool& everything);
  Result<std::vector<Choice>> choose(const Source& source);
  Result<std::vector<Choice>> ranked_best(const Source& source);
  [[nodiscard]] schedule::Steps predicted_best(const KnownTask& task,
                                               const search::TransferResult& found) const;
  Result<schedule::Steps> measured_best(const KnownTask& task, const search::TransferResult& found);
  Result<std::vector<Choice>> searched_best(const Source& source);
  Status compare();
  Result<search::TaskTuner*> open_tuner(size_t group);

  ModelTasks& model_;
  db::Store* store_;  // may be null
  const TransferReportOptions& options_;
  ThreadPool& threads_;
  search::TaskContext context_;
  measure::Runner* runner_ = nullptr;
  std::vector<KnownTask> tasks_;
  std::unique_ptr<search::TaskTuner> tuner_;
  size_t tuned_group_ = 0;
  TransferReport report_;
};

Status Reporter::find_tasks(const ScheduleSources& sources) {
  for (size_t g = 0; g < model_.tasks.groups.size(); ++g) {
    KnownTask task;
    task.group = g;
    HONE_RETURN_IF_ERROR(model_.space(g).status());
    task.space = &*model_.space(g);
    if (task.space->size() <= 1) continue;
    ++report_.tasks;
    HONE_ASSIGN_OR_RETURN(std::optional<ChosenSchedule> stored,
                          stored_schedule(model_, g, sources));
    if (!stored) {
      ++report_.untuned;
      continue;
    }
    task.best = std::move(stored->steps);
    tasks_.push_back(std::move(task));
  }
  if (tasks_.empty()) {
    return error(Code::kNotFound,
                 "the database has no record of {} on {} with {} threads: tune it first, to know "
                 "what the best is",
                 model_.name, model_.device(), model_.threads());
  }
  threads_.parallel_for(std::ssize(tasks_), [&](int64_t i) {
    KnownTask& task = tasks_[static_cast<size_t>(i)];
    const search::Predicted predicted = search::best_predicted(
        search_task(model_, task.group, *task.space, options_.compile.advanced.seed));
    task.fallback = task.space->steps(predicted.point);
    task.predicted = predicted.seconds;
  });
  return ok_status();
}

// The time that passed while the records of the model's tasks were made for it, pauses left out.
Status Reporter::find_full_tuning(db::TrialStore& store) {
  std::vector<int64_t> times;
  for (const KnownTask& task : tasks_) {
    HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> records,
                          store.query({.task = model_.tasks.groups[task.group].key,
                                       .device = model_.device(),
                                       .model = model_.name,
                                       .threads = model_.threads()}));
    for (const trial::Record& record : records) times.push_back(record.unix_time);
  }
  report_.full_trials = static_cast<int>(times.size());
  std::sort(times.begin(), times.end());
  for (size_t i = 1; i < times.size(); ++i)
    report_.full_seconds += static_cast<double>(std::min(times[i] - times[i - 1], kLongPause));
  if (options_.full_seconds > 0) report_.full_seconds = options_.full_seconds;
  return ok_status();
}

Result<Source> Reporter::named_source(const std::string& name,
                                      const search::TransferPool& everything) {
  Source source{name, 0, {}};
  std::error_code ignored;
  if (name == "pool") {
    source.pool = everything;
  } else if (!std::filesystem::is_regular_file(name, ignored) &&
             name.find("://") == std::string::npos) {
    source.pool = everything;
    source.pool.keep_model(name);
  } else if (std::filesystem::path(name).extension() == ".onnx") {
    // Its tasks, whichever model they were measured for.
    CompileOptions compile = options_.compile;
    compile.model.shapes.clear();
    compile.model.ranges.clear();
    compile.model.bind.clear();
    HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(name, compile));
    HONE_ASSIGN_OR_RETURN(const ModelTasks tasks,
                          make_tasks(*model_.session, std::move(graph), compile));
    std::set<uint64_t> keys;
    for (const graph::TaskGroup& group : tasks.tasks.groups) keys.insert(group.key);
    for (const trial::Record& record : everything.records()) {
      if (keys.contains(record.task)) source.pool.add(record);
    }
  } else {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<db::Store> store,
                          db::open_store(name, {.read_only = true, .create = false}));
    HONE_RETURN_IF_ERROR(source.pool.add_store(*store));
    keep_kind(source.pool, model_.target().kind());
    source.pool.exclude_tasks(model_.own);
    source.pool.exclude_tasks(model_.excluded);
  }
  if (source.pool.empty()) {
    std::set<std::string> names;
    for (const trial::Record& record : everything.records()) names.insert(record.model);
    return error(Code::kNotFound,
                 "there are no records of other tasks from '{}'; the database has {}", name,
                 names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  }
  return source;
}

// By what the models' schedules promise.
std::vector<search::SourceScore> Reporter::rank(const search::TransferPool& everything) {
  std::map<std::string, double> seconds;  // untuned, by class
  for (const KnownTask& task : tasks_) {
    const TaskSummary& summary = model_.summaries[task.group];
    seconds[summary.kernel_class] += summary.multiplicity * task.predicted;
  }
  return search::rank_sources(everything, seconds);
}

Result<std::vector<Source>> Reporter::make_sources(const search::TransferPool& everything) {
  std::vector<Source> sources;
  const std::vector<search::SourceScore> scores = rank(everything);
  for (const std::string& name : options_.from) {
    HONE_ASSIGN_OR_RETURN(Source source, named_source(name, everything));
    for (const search::SourceScore& ranked : scores) {
      if (ranked.model == name) source.score = ranked.score;
    }
    sources.push_back(std::move(source));
  }
  if (!options_.from.empty()) return sources;
  for (const search::SourceScore& ranked : scores) {
    if (sources.size() >= kRanked) break;
    sources.push_back({ranked.model, ranked.score, everything});
    sources.back().pool.keep_model(ranked.model);
  }
  sources.push_back({"pool", 0, everything});
  return sources;
}

Result<search::TaskTuner*> Reporter::open_tuner(size_t group) {
  if (!tuner_ || tuned_group_ != group) {
    tuner_ = std::make_unique<search::TaskTuner>(tune_task(model_, group), context_);
    tuned_group_ = group;
    HONE_RETURN_IF_ERROR(tuner_->open(nullptr));
  }
  return tuner_.get();
}

schedule::Steps Reporter::predicted_best(const KnownTask& task,
                                         const search::TransferResult& found) const {
  // As compile() does; the paper's way has nothing but steps as they are.
  for (const search::Transferred& candidate : found.candidates) {
    if (!candidate.point && !options_.as_in_paper) continue;
    const double trust = transfer_trust(candidate.steps, task.fallback);
    return candidate.predicted <= trust * task.predicted ? candidate.steps : task.fallback;
  }
  return task.fallback;
}

Result<schedule::Steps> Reporter::measured_best(const KnownTask& task,
                                                const search::TransferResult& found) {
  std::vector<schedule::Steps> tried = {task.fallback};
  for (const search::Transferred& candidate : found.candidates) {
    if (std::ssize(tried) < options_.measure) tried.push_back(candidate.steps);
  }
  HONE_ASSIGN_OR_RETURN(search::TaskTuner * tuner, open_tuner(task.group));
  HONE_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                        search::measure_schedules(*tuner, *runner_, tried, 1, threads_));
  return tried[static_cast<size_t>(std::min_element(seconds.begin(), seconds.end()) -
                                   seconds.begin())];
}

// By a cost model that has learned nothing of other sources' trials.
Result<std::vector<Choice>> Reporter::searched_best(const Source& source) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> fresh,
                        Session::open(options_.compile, {.store = SessionOptions::Store::kNone}));
  std::vector<search::TuneTask> tasks;
  for (const KnownTask& task : tasks_)
    tasks.push_back(tune_task(model_, task.group, task.fallback));
  search::TuneLoopOptions loop;
  loop.context = context_;
  loop.context.model = fresh->cost().get();
  loop.runner = runner_;
  loop.pool = &source.pool;
  loop.start = real_clock().now_seconds();
  loop.deadline = loop.start + (options_.search_seconds > 0 ? options_.search_seconds : kNoHurry);
  loop.batch = kBatch;
  loop.max_task_trials = options_.measure;
  loop.interrupted = options_.interrupted;
  HONE_ASSIGN_OR_RETURN(const search::TuneResult tuned, search::tune_tasks(tasks, loop));
  std::vector<Choice> best;
  for (const search::TunedTask& task : tuned.tasks) best.push_back({task.steps, task.offered});
  return best;
}

Result<std::vector<Choice>> Reporter::ranked_best(const Source& source) {
  std::vector<search::TransferResult> found(tasks_.size());
  threads_.parallel_for(std::ssize(tasks_), [&](int64_t i) {
    const KnownTask& task = tasks_[static_cast<size_t>(i)];
    found[static_cast<size_t>(i)] = search::transfer(
        search_task(model_, task.group, *task.space, options_.compile.advanced.seed),
        model_.dag(task.group), source.pool,
        {.device = model_.device(),
         .same_class = options_.as_in_paper,
         .as_they_are = options_.as_in_paper,
         .nearest = context_.nearest});
  });
  std::vector<Choice> chosen;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    HONE_RETURN_IF_ERROR(check_cancelled(options_.interrupted));
    chosen.push_back({predicted_best(tasks_[i], found[i]), {found[i].sources, found[i].invalid}});
    if (options_.measure > 0) {
      HONE_ASSIGN_OR_RETURN(chosen.back().steps, measured_best(tasks_[i], found[i]));
    }
  }
  return chosen;
}

Result<std::vector<Choice>> Reporter::choose(const Source& source) {
  const bool measures = options_.measure > 0 || options_.search_seconds > 0;
  return measures && !options_.as_in_paper ? searched_best(source) : ranked_best(source);
}

Status Reporter::try_source(const Source& source) {
  TransferSource result{source.name, source.score, 0, {}, {}};
  const double start = real_clock().now_seconds();
  HONE_ASSIGN_OR_RETURN(std::vector<Choice> chosen, choose(source));
  HONE_RETURN_IF_ERROR(check_cancelled(options_.interrupted));
  result.search_seconds = real_clock().now_seconds() - start;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    KnownTask& task = tasks_[i];
    const Choice& choice = chosen[i];
    const std::string& name = model_.summaries[task.group].kernel_class;
    auto at = std::find_if(result.classes.begin(), result.classes.end(),
                           [&](const TransferClass& c) { return c.kernel_class == name; });
    if (at == result.classes.end())
      at = result.classes.insert(result.classes.end(), TransferClass{.kernel_class = name});
    for (TransferClass* sum : {&*at, &result.total}) {
      ++sum->tasks;
      sum->used += choice.steps != task.fallback;
      sum->sources += choice.offered.records;
      sum->invalid += choice.offered.invalid;
    }
    task.chosen.push_back(choice.steps);
  }
  report_.sources.push_back(std::move(result));
  return ok_status();
}

// Default, best and what each source led to, timed together.
Status Reporter::compare() {
  for (const KnownTask& task : tasks_) {
    HONE_RETURN_IF_ERROR(check_cancelled(options_.interrupted));
    std::vector<schedule::Steps> schedules = {task.fallback, task.best};
    schedules.insert(schedules.end(), task.chosen.begin(), task.chosen.end());
    HONE_ASSIGN_OR_RETURN(search::TaskTuner * tuner, open_tuner(task.group));
    HONE_ASSIGN_OR_RETURN(
        const std::vector<double> seconds,
        search::measure_schedules(*tuner, *runner_, schedules, options_.rounds, threads_));
    const TaskSummary& summary = model_.summaries[task.group];
    const double best = *std::min_element(seconds.begin(), seconds.end());
    if (!std::isfinite(seconds[0])) {
      return error(Code::kInternal, "the default schedule of {} ({}) does not run", summary.name,
                   summary.kernel_class);
    }
    for (size_t s = 0; s < report_.sources.size(); ++s) {
      TransferSource& source = report_.sources[s];
      const auto at = std::find_if(
          source.classes.begin(), source.classes.end(),
          [&](const TransferClass& c) { return c.kernel_class == summary.kernel_class; });
      // What fails when it is run is replaced by the default.
      const double transferred = std::isfinite(seconds[2 + s]) ? seconds[2 + s] : seconds[0];
      for (TransferClass* sum : {&*at, &source.total}) {
        sum->default_seconds += summary.multiplicity * seconds[0];
        sum->transfer_seconds += summary.multiplicity * transferred;
        sum->best_seconds += summary.multiplicity * best;
      }
    }
  }
  return ok_status();
}

Result<TransferReport> Reporter::run() {
  report_.model = model_.name;
  HONE_ASSIGN_OR_RETURN(ScheduleSources sources, load_sources(model_, options_.compile));
  sources.choices.clear();  // each kernel is timed alone
  HONE_RETURN_IF_ERROR(load_other_tasks(model_, options_.compile, sources));
  HONE_RETURN_IF_ERROR(find_tasks(sources));
  std::vector<schedule::Steps> defaults(model_.tasks.groups.size());
  for (const KnownTask& task : tasks_) defaults[task.group] = task.fallback;
  HONE_ASSIGN_OR_RETURN(const int64_t packed, packed_bytes(model_, defaults));
  context_ = task_context(model_, options_.compile.advanced.seed, packed);
  context_.nearest = sources.nearest;
  if (store_) HONE_RETURN_IF_ERROR(find_full_tuning(*store_));
  search::TransferPool everything = sources.pool;
  everything.exclude_tasks(model_.own);
  HONE_ASSIGN_OR_RETURN(const std::vector<Source> models, make_sources(everything));
  const JobHooks& hooks = hooks_of(options_.compile);
  std::unique_ptr<measure::Runner> local;
  if (!hooks.runner) {
    HONE_ASSIGN_OR_RETURN(local,
                          model_.session->machine().make_runner(hooks.worker, model_.target()));
  }
  runner_ = hooks.runner ? hooks.runner : local.get();
  for (const Source& source : models) HONE_RETURN_IF_ERROR(try_source(source));
  HONE_RETURN_IF_ERROR(compare());
  return std::move(report_);
}

}  // namespace

std::optional<double> TransferClass::share() const {
  const double possible = default_seconds - best_seconds;
  if (possible <= 1e-3 * default_seconds) return std::nullopt;
  return (default_seconds - transfer_seconds) / possible;
}

Result<TransferReport> transfer_report(graph::Graph graph, const TransferReportOptions& options) {
  if (!options.compile.records.use_db)
    return invalid("a database is needed: it has what the sources know and what the best is");
  if (options.compile.records.transfer == "off")
    return invalid("transfer 'off', expected pool: the report is about transferring");
  if (options.as_in_paper && options.search_seconds > 0)
    return invalid("a time to search in goes with a search: schedules as they are have none");
  HONE_RETURN_IF_ERROR(check_measurable(options.compile));
  if (excludes(options.compile, graph.name)) {
    return invalid("records of model {} are excluded, but the report is about it and needs them",
                   graph.name);
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options.compile));
  HONE_ASSIGN_OR_RETURN(ModelTasks model, make_tasks(*session, std::move(graph), options.compile));
  return Reporter(model, options).run();
}

Result<TransferReport> transfer_report(const std::string& model,
                                       const TransferReportOptions& options) {
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(model, options.compile));
  return transfer_report(std::move(graph), options);
}

}  // namespace hone
