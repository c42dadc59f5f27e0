#include "hone/tune.h"

#include <algorithm>
#include <cmath>

#include "hone/base/file.h"
#include "hone/base/log.h"
#include "hone/db/registry.h"
#include "hone/fit_memory.h"
#include "hone/knowledge.h"
#include "hone/measure/local_runner.h"

namespace hone {
namespace {

constexpr int64_t kCompareBytes = 256 << 20;  // of weights; a larger model is not built twice
constexpr double kCompareSeconds = 1.5;       // for comparing tuned and default model
constexpr double kWriteRate =
    0.12e9;  // bytes of weights packed, linked and written in a second, on a slow day
constexpr double kMinimumSearch = 0.2;  // of the budget, whatever the rest needs

// Seconds of a run of each model, in turns, so that what disturbs one disturbs the others too:
// medians over rounds.
Result<std::vector<double>> compare(const std::vector<std::string>& libraries, int threads,
                                    double seconds) {
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
  std::vector<double> medians;
  for (Entry& entry : entries) {
    std::sort(entry.times.begin(), entry.times.end());
    medians.push_back(entry.times[entry.times.size() / 2]);
  }
  return medians;
}

Result<std::unique_ptr<db::Store>> open_for_tuning(const CompileOptions& options) {
  if (!options.use_db) return std::unique_ptr<db::Store>();
  return db::open_store(options.db);
}

Result<std::vector<schedule::Steps>> default_schedules(const ModelTasks& model) {
  std::vector<schedule::Steps> schedules;
  for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
    HONE_ASSIGN_OR_RETURN(const space::Space space,
                          space::Space::create(model.dag(g), model.target, model.accuracy));
    schedules.push_back(space.steps(space.default_point()));
  }
  return schedules;
}

}  // namespace

Result<TuneSummary> tune(graph::Graph graph, const std::string& output,
                         const TuneOptions& options) {
  Clock& clock = real_clock();
  const double start = options.start_seconds >= 0 ? options.start_seconds : clock.now_seconds();
  const double end = start + options.budget_seconds;
  if (!(options.budget_seconds > 0))
    return invalid("the budget is {} seconds, expected more than 0", options.budget_seconds);
  HONE_ASSIGN_OR_RETURN(const target::Target device, target::find(options.compile.device));
  if (!target::runs_here(device)) {
    return error(Code::kUnsupported,
                 "device {} cannot be measured here, expected host or a part of it; compile works "
                 "for it",
                 options.compile.device);
  }
  HONE_RETURN_IF_ERROR(check_output(output, options.compile));
  HONE_RETURN_IF_ERROR(check_options(options.compile));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<db::Store> store, open_for_tuning(options.compile));
  HONE_ASSIGN_OR_RETURN(ModelTasks model,
                        make_tasks(graph, options.compile, {.store = store.get()}));
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<measure::Runner> runner,
      measure::make_local_runner({.worker = {.executable = options.worker_executable,
                                             .arguments = options.worker_arguments}}));
  ThreadPool pool(model.target.cores);
  HONE_ASSIGN_OR_RETURN(const TempDir folder, TempDir::create());
  HONE_ASSIGN_OR_RETURN(std::vector<schedule::Steps> defaults, default_schedules(model));

  // The default model comes first: it says how long writing one takes, and what must be beaten.
  const std::string default_library = folder.file("default.so");
  const int64_t weight_bytes = constant_bytes(model.tasks);
  const bool compares = weight_bytes <= kCompareBytes && options.budget_seconds >= 10;
  double write_seconds = 0.5 + 0.05 * static_cast<double>(defaults.size()) +
                         static_cast<double>(weight_bytes) / kWriteRate;
  // What is measured is a shared library, whatever is wanted.
  const bool is_static = is_static_library(output, options.compile);
  CompileOptions plain = options.compile;
  plain.header = false;
  plain.static_library = false;
  if (compares || plain.max_memory > 0) {  // what can never fit is to fail before the search
    HONE_ASSIGN_OR_RETURN(const Written written,
                          write_within(model, defaults, store.get(), default_library, plain, pool));
    write_seconds = 0.3 + 2.0 * written.seconds;  // tuned code is larger
  }
  const double compare_seconds =
      compares ? std::min(kCompareSeconds, 0.05 * options.budget_seconds) : 0;
  const int copies = is_static && compares ? 2 : 1;
  const double reserve = std::min(copies * write_seconds + (compares ? 0.5 + compare_seconds : 0),
                                  (1 - kMinimumSearch) * options.budget_seconds);

  std::vector<search::TuneTask> tasks;
  for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
    tasks.push_back({&model.dag(g), model.tasks.groups[g].key,
                     static_cast<double>(model.summaries[g].multiplicity),
                     model.summaries[g].name});
  }
  const std::vector<Alternative> alternatives = std::move(model.alternatives);
  for (const Alternative& other : alternatives) {
    tasks.push_back({&other.dag, other.key, static_cast<double>(other.multiplicity),
                     "instead: " + compute::kernel_class(other.dag)});
  }
  search::TuneLoopOptions loop;
  loop.context = task_context(model, options.compile.seed);
  loop.context.searcher = options.search;
  loop.runner = runner.get();
  loop.store = store.get();
  loop.learn = !excludes(options.compile, model.name);
  HONE_ASSIGN_OR_RETURN(const Knowledge knowledge, learn(model, store.get(), options.compile));
  loop.pool = &knowledge.pool;
  loop.start = start;
  loop.deadline = end - reserve;
  loop.batch = options.batch;
  loop.max_trials = options.max_trials;
  loop.interrupted = options.interrupted;
  loop.on_progress = options.on_progress;
  HONE_ASSIGN_OR_RETURN(const search::TuneResult tuned, search::tune_tasks(tasks, loop));

  TuneSummary summary;
  summary.trials = tuned.trials;
  summary.search_seconds = tuned.seconds;
  summary.interrupted = tuned.interrupted;
  std::map<uint64_t, const search::TunedTask*> by_key;
  for (size_t i = 0; i < tasks.size(); ++i) by_key[tasks[i].key] = &tuned.tasks[i];
  if (!alternatives.empty()) {  // their times are known now
    const auto measured = [&](uint64_t key) -> std::optional<double> {
      const auto task = by_key.find(key);
      if (task == by_key.end() || task->second->seconds <= 0) return std::nullopt;
      return task->second->seconds;
    };
    HONE_ASSIGN_OR_RETURN(model, make_tasks(std::move(graph), options.compile,
                                            {.measured = measured, .decided = model.decisions}));
    HONE_ASSIGN_OR_RETURN(defaults, default_schedules(model));
  }
  std::vector<schedule::Steps> schedules;
  for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
    const auto found = by_key.find(model.tasks.groups[g].key);
    HONE_ASSERT(found != by_key.end(), "a choice between tasks that were all tuned");
    const search::TunedTask& task = *found->second;
    TaskSummary& line = model.summaries[g];
    line.source = task.steps == defaults[g] ? "default" : "tuned";
    line.seconds = task.seconds;
    line.default_seconds = task.default_seconds;
    line.trials = task.trials;
    line.steps = schedule::to_string(task.steps);
    schedules.push_back(task.steps);
  }
  HONE_ASSIGN_OR_RETURN(Written written,
                        write_within(model, schedules, store.get(), output, options.compile, pool));
  std::string tuned_library = output;
  if (is_static && compares && !tuned.interrupted) {
    tuned_library = folder.file("tuned.so");
    HONE_RETURN_IF_ERROR(write_model(model, schedules, tuned_library, plain, pool).status());
  }

  // Never worse: what was measured kernel by kernel must hold for the whole model.
  const double left = end - clock.now_seconds() - 0.2;
  if (compares && left > 0.3 && !tuned.interrupted) {
    const Result<std::vector<double>> times =
        compare({tuned_library, default_library}, model.threads, std::min(compare_seconds, left));
    if (times.ok()) {
      summary.model_seconds = (*times)[0];
      summary.default_model_seconds = (*times)[1];
      summary.kept_default = summary.model_seconds > summary.default_model_seconds;
    } else {
      log_warning("the tuned model was not compared with the default: {}",
                  times.status().message());
    }
  }
  if (summary.kept_default) {
    HONE_ASSIGN_OR_RETURN(
        written, write_within(model, defaults, store.get(), output, options.compile, pool));
    std::swap(summary.model_seconds, summary.default_model_seconds);
  }
  summary.compile = {std::move(model.summaries), clock.now_seconds() - start, written.bytes,
                     written.arena_bytes, written.memory_bytes};
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
