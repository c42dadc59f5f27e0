#include "hone/session/model_tasks.h"

#include <algorithm>
#include <cmath>

#include "hone/analysis/cpu_measure.h"
#include "hone/base/cancel.h"
#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/base/log.h"
#include "hone/compute/class_family.h"
#include "hone/compute/dag_text.h"
#include "hone/graph/import_onnx.h"
#include "hone/machine/machine.h"
#include "hone/search/prediction.h"
#include "hone/session/schedule_sources.h"
#include "hone/trial/schedule_version.h"

namespace hone {
namespace {

// Records of a task that are looked at, fastest first, for one that still applies.
constexpr int kBestTried = 8;

constexpr double kFastTolerance = 1e-2;  // of the largest output: constants of 16 bits, tf32
constexpr int kColdSamples = 15;         // emptying the caches takes longer than many a run

// How often a run of the model runs the kernel, as far as that is known.
int runs_of(const graph::TaskList& tasks, const graph::TaskGroup& group) {
  constexpr double kMost = 1e9;
  double runs = 0;
  for (const int call : group.calls) runs += tasks.calls[static_cast<size_t>(call)].runs;
  return static_cast<int>(std::lround(std::min(runs, kMost)));
}

// Finds the distinct tasks of the model's groups.
void find_distinct(ModelTasks& model) {
  for (const graph::TaskGroup& group : model.tasks.groups) {
    const graph::TaskCall& call = model.tasks.calls[static_cast<size_t>(group.calls[0])];
    const TaskPtr task = model.session->tasks().get(call.dag, group.key);
    TaskSummary summary;
    summary.key = group.key;
    summary.name = call.name;
    summary.kernel_class = task->kernel_class();
    summary.multiplicity = runs_of(model.tasks, group);
    summary.flops = task->flops();
    summary.least_flops = task->least_flops(model.accuracy());
    summary.bytes = task->bytes();
    summary.matrix = task->matrix_type(model.accuracy());
    model.distinct.push_back(task);
    model.summaries.push_back(std::move(summary));
  }
}

// Returns whether the device of the options runs loops of a model; so does one that is not known,
// which is an error later.
bool repeats_steps(const CompileOptions& options) {
  const Result<const machine::Machine*> machine = machine_of(options);
  if (!machine.ok()) return true;
  const Result<target::Target> target = (*machine)->find(options.target.device);
  return !target.ok() || target->kind() == target::Kind::kCpu;
}

}  // namespace

bool may_lack_rows(const ModelTasks& model, size_t group) {
  if (model.tasks.sizes >= 0) return true;
  if (model.tasks.decided.empty()) return false;
  const auto is_decided = [&](graph::ValueId id) {
    return id != graph::kNoValue && model.graph.value(id).extents != graph::kNoValue;
  };
  return std::ranges::any_of(model.tasks.groups[group].calls, [&](int c) {
    const graph::TaskCall& call = model.tasks.calls[static_cast<size_t>(c)];
    return call.loop >= 0 || std::ranges::any_of(call.nodes, [&](int n) {
             const graph::Node& node = model.graph.nodes[static_cast<size_t>(n)];
             return std::ranges::any_of(node.inputs, is_decided) ||
                    std::ranges::any_of(node.outputs, is_decided);
           });
  });
}

Result<graph::Graph> import_model(const std::string& path, const CompileOptions& options,
                                  std::set<std::string>* files) {
  std::string taken;
  Result<graph::Graph> graph = graph::import_onnx_binding(path,
                                                          {.shapes = options.model.shapes,
                                                           .ranges = options.model.ranges,
                                                           .open_ranges = true,
                                                           .taken = &taken,
                                                           .bind = options.model.bind,
                                                           .linked_data = options.model.linked_data,
                                                           .max_turns = options.model.max_turns,
                                                           .repeats_steps = repeats_steps(options),
                                                           .files = files},
                                                          options.model.available);
  if (graph.ok() && !taken.empty()) log_warning("{}", taken);
  return graph;
}

db::BestQuery best_query(const ModelTasks& model, uint64_t key, const std::string& algorithm) {
  db::BestQuery query{
      .task = key, .device = model.device(), .threads = model.threads(), .algorithm = algorithm};
  query.accuracy = model.accuracy();
  query.limit = kBestTried;
  return query;
}

Result<std::vector<trial::Record>> best_stored(const ModelTasks& model, db::TrialStore& store,
                                               uint64_t key, const std::string& algorithm) {
  if (model.excluded.contains(key)) return std::vector<trial::Record>();
  return store.best(best_query(model, key, algorithm));
}

// Lanes of float32 that the layouts of tensors are made for. The threads of a GPU take single
// elements, so the least number will do.
static int layout_lanes(const target::Target& target) {
  constexpr int kLeastLanes = 4;
  return target.kind() == target::Kind::kCpu ? target.cpu().lanes(4) : kLeastLanes;
}

graph::PassOptions pass_options(const CompileOptions& options, const target::Target& target) {
  return {.skip = options.advanced.skip_passes,
          .also = options.advanced.also_passes,
          .later = {kRunTogether},
          .after_pass = hooks_of(options).after_pass,
          .lanes = layout_lanes(target),
          .any_order = target.kind() == target::Kind::kGpu,
          .widens_halves = target.kind() != target::Kind::kGpu};
}

// Divides an optimized graph into tasks. `decided`: decisions that hold; `measured`, which may be
// empty, is asked before the store.
static Result<ModelTasks> divide(Session& session, graph::Graph graph,
                                 const CompileOptions& options, Decisions decided,
                                 const Measured& measured) {
  ModelTasks model;
  model.session = &session;
  model.name = graph.name;
  HONE_ASSIGN_OR_RETURN(model.excluded, excluded_tasks(session, options));
  const bool excludes_itself = excludes(options, model.name);
  db::Store* const store = excludes_itself ? nullptr : session.store();
  TaskChooser chooser({session.tasks(), model.target(), *model.cost(), model.threads(),
                       model.accuracy(), options.advanced.seed,
                       [&](uint64_t key) -> std::optional<double> {
                         if (measured) {
                           if (const auto seconds = measured(key)) return seconds;
                         }
                         if (store == nullptr) return std::nullopt;
                         const Result<std::vector<trial::Record>> best =
                             best_stored(model, *store, key);
                         if (!best.ok() || best->empty()) return std::nullopt;
                         return (*best)[0].undisturbed_seconds();
                       },
                       std::move(decided), &session.pool()});
  const auto join = [&](const compute::Dag& joined, const compute::Dag& first,
                        const compute::Dag& second) { return chooser.join(joined, first, second); };
  HONE_ASSIGN_OR_RETURN(model.tasks, graph::extract_tasks(graph, {.join = join}));
  if (!model.tasks.loops.empty() && model.target().kind() != target::Kind::kCpu)
    return error(
        Code::kUnsupported,
        "node '{}' is a loop that a run repeats, which CPUs alone do: expected a number of "
        "turns that is known and small, or a CPU (--device)",
        model.tasks.loops[0].name);
  model.alternatives = chooser.alternatives();
  model.decisions = chooser.decisions();
  model.own = chooser.weighed();
  for (const graph::TaskGroup& group : model.tasks.groups) model.own.insert(group.key);
  if (excludes_itself) model.excluded.insert(model.own.begin(), model.own.end());
  find_distinct(model);
  model.graph = std::move(graph);
  return model;
}

Result<ModelTasks> make_tasks(Session& session, graph::Graph graph, const CompileOptions& options,
                              const graph::OnChange& on_change) {
  if (graph.varying.any() && session.target().kind() != target::Kind::kCpu)
    return error(Code::kUnsupported,
                 "{}: the shapes of its inputs vary, which libraries for GPUs cannot: give each "
                 "one size (--shape NAME=DIMS)",
                 graph.file);
  graph::PassOptions passes = pass_options(options, session.target());
  passes.on_change = on_change;
  HONE_RETURN_IF_ERROR(graph::optimize(graph, passes));
  return divide(session, std::move(graph), options, {}, {});
}

Result<ModelTasks> divide_again(const ModelTasks& before, const CompileOptions& options,
                                const Measured& measured) {
  return divide(*before.session, before.graph, options, before.decisions, measured);
}

Result<ModelTasks> make_stored_task(Session& session, uint64_t key, const CompileOptions& options) {
  ModelTasks model;
  model.session = &session;
  db::Filter filter;
  filter.task = key;
  filter.with_task_text = true;
  filter.limit = 1;
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> records, session.store()->query(filter));
  if (records.empty()) return error(Code::kNotFound, "the database has no task {}", hash_hex(key));
  Result<compute::Dag> dag = compute::parse_dag(records[0].task_text);
  if (!dag.ok()) {
    return error(Code::kUnsupported, "the database keeps task {} as no text that can be read: {}",
                 hash_hex(key), dag.status().message());
  }
  model.name = records[0].model;
  HONE_ASSIGN_OR_RETURN(model.excluded, excluded_tasks(session, options));
  model.own = {key};
  model.tasks.groups = {{key, {0}}};
  model.tasks.calls.push_back({*std::move(dag), key, {}, {}, records[0].model, 0});
  find_distinct(model);
  return model;
}

search::SearchTask search_task(const ModelTasks& model, size_t group, const space::Space& space,
                               uint64_t seed) {
  return {.space = &space,
          .target = &model.target(),
          .model = model.cost().get(),
          .threads = model.threads(),
          .key = model.tasks.groups[group].key,
          .seed = seed,
          .pool = &model.session->pool(),
          .family = compute::class_family(model.summaries[group].kernel_class)};
}

search::TuneTask tune_task(const ModelTasks& model, size_t group,
                           std::optional<schedule::Steps> start) {
  const TaskSummary& summary = model.summaries[group];
  const Result<space::Space>& space = model.space(group);
  return {&model.dag(group),
          model.tasks.groups[group].key,
          static_cast<double>(summary.multiplicity),
          summary.name,
          std::move(start),
          space.ok() ? std::optional(*space) : std::nullopt,
          lowered_in(*model.session, model.distinct[group])};
}

std::function<search::ProgramPtr(const schedule::Steps&)> lowered_in(Session& session,
                                                                     const TaskPtr& task) {
  return [&kernels = session.kernels(), task](const schedule::Steps& steps) {
    return kernels.find(task, steps);
  };
}

void keep_programs(Session& session, const TaskPtr& task, const search::TunedTask& tuned) {
  session.kernels().insert(task, tuned.steps, tuned.program);
  for (const search::MeasuredSchedule& next : tuned.runners_up)
    session.kernels().insert(task, next.steps, next.program);
}

int64_t constant_bytes(const graph::TaskList& tasks) {
  int64_t bytes = 0;
  for (const Tensor& constant : tasks.constants) bytes += constant.bytes();
  return bytes;
}

// A task of the database comes without its model's weights: those that it has itself count.
static int64_t weight_bytes(const ModelTasks& model) {
  return model.tasks.constants.empty() ? search::constant_bytes(model.dag(0))
                                       : constant_bytes(model.tasks);
}

int64_t own_cache_bytes(const target::Target& target) {
  if (target.kind() == target::Kind::kGpu) return target.gpu().l2_bytes;
  int64_t bytes = 0;
  for (const target::Cache& cache : target.cpu().caches) {
    if (cache.level <= 2) bytes = std::max(bytes, cache.bytes);
  }
  return bytes;
}

search::TaskContext task_context(const ModelTasks& model, uint64_t seed, int64_t packed_bytes) {
  search::TaskContext context;
  context.target = &model.target();
  context.model = model.cost().get();
  context.accuracy = model.accuracy();
  if (model.accuracy() == trial::Accuracy::kFast) context.tolerance = kFastTolerance;
  context.device = model.device();
  context.version = kScheduleVersion;
  context.source = model.name;
  context.threads = model.threads();
  context.seed = seed;
  // Between two runs of a kernel the whole model's weights pass by. Whether what the cores' own
  // caches cannot hold stays in the last-level cache, which strangers may share, is tried out. A
  // GPU has no cache behind its L2.
  const int64_t own_cache = own_cache_bytes(model.target());
  context.own_cache_bytes = own_cache;
  context.excluded = &model.excluded;
  const int64_t weights = std::max(weight_bytes(model), packed_bytes);
  if (weights > 2 * own_cache) {
    const bool stays = model.target().kind() == target::Kind::kCpu &&
                       model.session->machine().conditions().stays_in_cache(weights);
    context.weights = stays ? measure::Weights::kShared : measure::Weights::kMemory;
    context.timing.max_samples = kColdSamples;
  }
  return context;
}

Result<double> predicted_seconds(const ModelTasks& model, size_t group,
                                 const schedule::Steps& steps) {
  const search::SearchTask task{.target = &model.target(),
                                .model = model.cost().get(),
                                .threads = model.threads(),
                                .key = model.tasks.groups[group].key};
  return search::predict_seconds(task, model.dag(group), steps);
}

}  // namespace hone
