#include "hone/tune.h"

#include <algorithm>
#include <cmath>

#include "hone/base/file.h"
#include "hone/base/log.h"
#include "hone/db/registry.h"
#include "hone/fit_memory.h"
#include "hone/in_model.h"
#include "hone/knowledge.h"
#include "hone/measure/local_runner.h"
#include "hone/measure/statistics.h"

namespace hone {
namespace {

constexpr int64_t kCompareBytes = 256 << 20;  // of weights; a larger model is not built twice
constexpr double kCompareSeconds = 1.5;       // for comparing tuned and default model
constexpr double kWriteRate =
    0.12e9;  // bytes of weights packed, linked and written in a second, on a slow day
constexpr double kInModelShare = 0.05;  // of the budget, for comparing kernels in the model
constexpr int64_t kInModelBytes = int64_t{1} << 30;  // of weights; a larger model is not held twice
constexpr double kPackRate = 0.5e9;                  // bytes of weights packed in a second
constexpr double kMinimumSearch = 0.2;               // of the budget, whatever the rest needs

// Seconds of the runs of each model, in turns, so that what disturbs one disturbs the others too.
Result<std::vector<std::vector<double>>> compare(const std::vector<std::string>& libraries,
                                                 int threads, double seconds) {
  struct Entry {
    codegen::LoadedModel model;
    std::vector<Tensor> inputs, outputs;
    std::vector<const void*> from;
    std::vector<void*> to;
    std::vector<double> times;
  };
  std::vector<Entry> entries;
  for (const std::string& library : libraries) {
    HONE_ASSIGN_OR_RETURN(codegen::LoadedModel model, codegen::LoadedModel::open(library, threads));
    Entry entry{std::move(model), {}, {}, {}, {}, {}};
    for (const codegen::ModelTensor& input : entry.model.inputs())
      entry.inputs.emplace_back(input.dtype, input.shape);
    for (const codegen::ModelTensor& output : entry.model.outputs())
      entry.outputs.emplace_back(output.dtype, output.shape);
    for (const Tensor& tensor : entry.inputs) entry.from.push_back(tensor.data());
    for (Tensor& tensor : entry.outputs) entry.to.push_back(tensor.data());
    entries.push_back(std::move(entry));
  }
  Clock& clock = real_clock();
  const double end = clock.now_seconds() + seconds;
  for (int round = 0; round < 4 || clock.now_seconds() < end; ++round) {
    for (Entry& entry : entries) {
      const double start = clock.now_seconds();
      HONE_RETURN_IF_ERROR(entry.model.run(entry.from, entry.to));
      if (round > 0) entry.times.push_back(clock.now_seconds() - start);
    }
  }
  std::vector<std::vector<double>> times;
  for (Entry& entry : entries) times.push_back(std::move(entry.times));
  return times;
}

Result<std::unique_ptr<db::Store>> open_for_tuning(const CompileOptions& options) {
  if (!options.use_db) return std::unique_ptr<db::Store>();
  return db::open_store(options.db);
}

// What `compile` would make of the model before anything is measured.
struct Untuned {
  ModelTasks model;
  Knowledge knowledge;
  std::vector<schedule::Steps> schedules;  // by group
};

Result<Untuned> make_untuned(graph::Graph graph, const CostModelPtr& cost, db::Store* store,
                             const CompileOptions& options, ThreadPool& pool) {
  Untuned untuned;
  HONE_ASSIGN_OR_RETURN(untuned.model,
                        make_tasks(std::move(graph), options, {.cost = cost, .store = store}));
  HONE_ASSIGN_OR_RETURN(untuned.knowledge, learn(untuned.model, store, options));
  HONE_ASSIGN_OR_RETURN(untuned.schedules,
                        known_schedules(untuned.model, untuned.knowledge, options, pool));
  return untuned;
}

using TunedByKey = std::map<uint64_t, const search::TunedTask*>;

// The schedules of `model`, the partition that the measured times speak for: the tuned ones, and
// where the time was too short for a task, what was known of it before. Fills in the summaries.
Result<std::vector<schedule::Steps>> tuned_schedules(ModelTasks& model, const Untuned& before,
                                                     const TunedByKey& tuned,
                                                     const CompileOptions& options) {
  std::map<uint64_t, size_t> known;
  for (size_t g = 0; g < before.schedules.size(); ++g) known[before.model.tasks.groups[g].key] = g;
  std::vector<schedule::Steps> schedules;
  for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
    const uint64_t key = model.tasks.groups[g].key;
    const auto found = tuned.find(key);
    HONE_ASSERT(found != tuned.end(), "a choice between tasks that were all tuned");
    const search::TunedTask& task = *found->second;
    TaskSummary& line = model.summaries[g];
    schedule::Steps steps = task.steps;
    const auto at = known.find(key);
    if (at != known.end() && (task.seconds <= 0 || task.steps == task.untuned_steps)) {
      line = before.model.summaries[at->second];
      steps = before.schedules[at->second];
      if (task.seconds > 0) line.seconds = task.seconds;
    } else if (task.seconds > 0) {
      line.source = task.trials == 0 ? "stored" : "tuned";
      line.seconds = task.seconds;
    } else {  // a task that takes another's place
      HONE_ASSIGN_OR_RETURN(KnownSchedule other,
                            unmeasured_schedule(model, g, before.knowledge, options));
      line.source = other.source, line.from = other.from;
      line.predicted_seconds = other.predicted_seconds;
      steps = std::move(other.steps);
    }
    line.untuned_seconds = task.untuned_seconds;
    line.trials = task.trials;
    line.steps = schedule::to_string(steps);
    schedules.push_back(std::move(steps));
  }
  return schedules;
}

// Compares the best few schedules of the tasks inside the model and takes the fastest there.
Status choose_in_model(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                       const TunedByKey& tuned, int most, const InModelOptions& options,
                       ThreadPool& pool, InModelSummary& summary) {
  const double start = real_clock().now_seconds();
  std::vector<std::vector<search::MeasuredSchedule>> runners_up;
  for (const graph::TaskGroup& group : model.tasks.groups)
    runners_up.push_back(tuned.at(group.key)->runners_up);
  const std::vector<Contest> contests = contests_of(model, schedules, runners_up, most);
  if (contests.empty()) {
    summary.skipped = "no kernel has a second schedule that is about as fast";
    return ok_status();
  }
  HONE_ASSIGN_OR_RETURN(const InModelResult result,
                        compare_in_model(model, schedules, contests, options, pool));
  if (result.rounds == 0) {
    summary.skipped = "there was no time left";
    return ok_status();
  }
  summary.compared = static_cast<int>(contests.size());
  summary.model_seconds = result.model_seconds;
  summary.saved_seconds = result.saved_seconds;
  for (size_t c = 0; c < contests.size(); ++c) {
    if (result.winners[c] < 0) continue;
    const size_t group = contests[c].group;
    const auto& winner = contests[c].challengers[static_cast<size_t>(result.winners[c])];
    ++summary.changed;
    schedules[group] = winner.steps;
    TaskSummary& line = model.summaries[group];
    line.source = "tuned";
    line.from.clear();
    line.seconds = winner.seconds;
    line.steps = schedule::to_string(winner.steps);
  }
  summary.seconds = real_clock().now_seconds() - start;
  return ok_status();
}

}  // namespace

Result<TuneSummary> tune(graph::Graph graph, const std::string& output,
                         const TuneOptions& options) {
  Clock& clock = real_clock();
  const double start = options.start_seconds >= 0 ? options.start_seconds : clock.now_seconds();
  const double end = start + options.budget_seconds;
  if (!(options.budget_seconds > 0))
    return invalid("the budget is {} seconds, expected more than 0", options.budget_seconds);
  HONE_RETURN_IF_ERROR(target::find_here(options.compile.device).status());
  HONE_RETURN_IF_ERROR(check_output(output, options.compile));
  HONE_ASSIGN_OR_RETURN(const CostModelPtr cost, resolve_options(options.compile));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<db::Store> store, open_for_tuning(options.compile));
  const target::Target host = target::host();
  ThreadPool pool(host.cores);
  HONE_ASSIGN_OR_RETURN(Untuned untuned,
                        make_untuned(graph, cost, store.get(), options.compile, pool));
  ModelTasks& model = untuned.model;
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<measure::Runner> runner,
      measure::make_local_runner({.worker = {.executable = options.worker_executable,
                                             .arguments = options.worker_arguments}}));
  HONE_ASSIGN_OR_RETURN(const TempDir folder, TempDir::create());

  // The untuned model comes first: it says how long writing one takes, and what must be beaten.
  const std::string untuned_library = folder.file("untuned.so");
  const int64_t weight_bytes = constant_bytes(model.tasks);
  const bool compares = weight_bytes <= kCompareBytes && options.budget_seconds >= 10;
  double write_seconds = 0.5 + 0.05 * static_cast<double>(untuned.schedules.size()) +
                         static_cast<double>(weight_bytes) / kWriteRate;
  double assembly_seconds = 0.03 * static_cast<double>(untuned.schedules.size()) +
                            static_cast<double>(weight_bytes) / kPackRate;
  // What is measured is a shared library, whatever is wanted.
  const bool is_static = is_static_library(output, options.compile);
  CompileOptions plain = options.compile;
  plain.header = false;
  plain.static_library = false;
  if (compares || plain.max_memory > 0) {  // what can never fit is to fail before the search
    HONE_ASSIGN_OR_RETURN(
        const Written written,
        write_within(model, untuned.schedules, untuned.knowledge, untuned_library, plain, pool));
    write_seconds = 0.3 + 2.0 * written.seconds;  // tuned code is larger
    assembly_seconds = written.assembly;
  }
  const double compare_seconds =
      compares ? std::min(kCompareSeconds, 0.05 * options.budget_seconds) : 0;
  TuneSummary summary;
  InModelSummary& in_model = summary.in_model;
  double in_model_seconds = kInModelShare * options.budget_seconds;
  if (weight_bytes > kInModelBytes) in_model.skipped = "the model is too large";
  // Half the time is for compiling and packing; tuned code takes about twice as long.
  if (assembly_seconds > 0.2 * in_model_seconds) in_model.skipped = "the budget is too short";
  if (!in_model.skipped.empty()) in_model_seconds = 0;
  const int copies = is_static && compares ? 2 : 1;
  const double finish = copies * write_seconds + (compares ? 0.5 + compare_seconds : 0);
  const double reserve =
      std::min(in_model_seconds + finish, (1 - kMinimumSearch) * options.budget_seconds);

  std::vector<search::TuneTask> tasks;
  for (size_t g = 0; g < model.tasks.groups.size(); ++g)
    tasks.push_back(tune_task(model, g, untuned.schedules[g]));
  const std::vector<Alternative> alternatives = model.alternatives;
  for (const Alternative& other : alternatives) {
    tasks.push_back({&other.dag, other.key, static_cast<double>(other.multiplicity),
                     "instead: " + compute::kernel_class(other.dag)});
  }
  search::TuneLoopOptions loop;
  loop.context = task_context(model, options.compile.seed);
  loop.context.searcher = options.search;
  loop.runner = runner.get();
  loop.store = store.get();
  HONE_RETURN_IF_ERROR(learn_from_others(model, options.compile, untuned.knowledge));
  loop.pool = &untuned.knowledge.pool;
  loop.start = start;
  loop.deadline = end - reserve;
  loop.batch = options.batch;
  loop.max_trials = options.max_trials;
  loop.interrupted = options.interrupted;
  loop.on_progress = options.on_progress;
  HONE_ASSIGN_OR_RETURN(const search::TuneResult tuned, search::tune_tasks(tasks, loop));

  summary.trials = tuned.trials;
  summary.search_seconds = tuned.seconds;
  summary.interrupted = tuned.interrupted;
  TunedByKey by_key;
  for (size_t i = 0; i < tasks.size(); ++i) by_key[tasks[i].key] = &tuned.tasks[i];
  ModelTasks repartitioned;
  if (!alternatives.empty()) {  // their times are known now
    const auto measured = [&](uint64_t key) -> std::optional<double> {
      const auto task = by_key.find(key);
      if (task == by_key.end() || task->second->seconds <= 0) return std::nullopt;
      return task->second->seconds;
    };
    HONE_ASSIGN_OR_RETURN(
        repartitioned,
        make_tasks(std::move(graph), options.compile,
                   {.cost = cost, .measured = measured, .decided = model.decisions}));
  }
  ModelTasks& chosen = alternatives.empty() ? model : repartitioned;
  std::vector<TaskSummary> untuned_summaries = model.summaries;
  HONE_ASSIGN_OR_RETURN(std::vector<schedule::Steps> schedules,
                        tuned_schedules(chosen, untuned, by_key, options.compile));
  if (tuned.interrupted) in_model.skipped = "interrupted";
  if (in_model.skipped.empty()) {
    const double deadline = std::min(clock.now_seconds() + in_model_seconds, end - finish);
    const InModelOptions how = {deadline, options.compile.seed, options.interrupted};
    // Each challenger takes as long to compile as a kernel of the model.
    const double many = 0.25 * in_model_seconds / std::max(assembly_seconds, 1e-3) - 1;
    const int most = std::max(4, static_cast<int>(many * static_cast<double>(schedules.size())));
    const Status status = choose_in_model(chosen, schedules, by_key, most, how, pool, in_model);
    if (status.code() == Code::kCancelled) {
      in_model.skipped = "interrupted";
    } else if (!status.ok()) {
      in_model.skipped = status.message();
      log_warning("no kernels were compared inside the model: {}", status.message());
    }
  }
  HONE_ASSIGN_OR_RETURN(Written written, write_within(chosen, schedules, untuned.knowledge, output,
                                                      options.compile, pool));
  std::string tuned_library = output;
  if (is_static && compares && !tuned.interrupted) {
    tuned_library = folder.file("tuned.so");
    HONE_RETURN_IF_ERROR(write_model(chosen, schedules, tuned_library, plain, pool).status());
  }

  // Never worse: what was measured kernel by kernel must hold for the whole model.
  const double left = end - clock.now_seconds() - 0.2;
  if (compares && left > 0.3 && !tuned.interrupted) {
    const Result<std::vector<std::vector<double>>> times =
        compare({tuned_library, untuned_library}, model.threads, std::min(compare_seconds, left));
    if (times.ok()) {
      const measure::Duel duel = {.challenger = (*times)[1], .incumbent = (*times)[0]};
      summary.model_seconds = measure::median(duel.incumbent);
      summary.untuned_model_seconds = measure::median(duel.challenger);
      summary.kept_untuned = winner({&duel, 1}) == 0;  // else noise would undo the tuning
    } else {
      log_warning("the tuned model was not compared with the untuned one: {}",
                  times.status().message());
    }
  }
  if (summary.kept_untuned) {
    model.summaries = std::move(untuned_summaries);
    HONE_ASSIGN_OR_RETURN(written, write_within(model, untuned.schedules, untuned.knowledge, output,
                                                options.compile, pool));
    std::swap(summary.model_seconds, summary.untuned_model_seconds);
  }
  summary.compile = {std::move(summary.kept_untuned ? model.summaries : chosen.summaries),
                     clock.now_seconds() - start,
                     written.bytes,
                     written.arena_bytes,
                     written.memory_bytes,
                     written.calls,
                     written.turns};
  return summary;
}

Result<TuneSummary> tune(const std::string& model, const std::string& output,
                         const TuneOptions& options) {
  TuneOptions from_now = options;
  if (from_now.start_seconds < 0) from_now.start_seconds = real_clock().now_seconds();
  HONE_RETURN_IF_ERROR(check_output(output, options.compile));
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(model, options.compile));
  return tune(std::move(graph), output, from_now);
}

}  // namespace hone
