#include "hone/model/model_tasks.h"

#include <algorithm>

#include "hone/analysis/cpu_measure.h"
#include "hone/base/cancel.h"
#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/base/log.h"
#include "hone/compute/bytes_moved.h"
#include "hone/compute/dag_text.h"
#include "hone/cost/registry.h"
#include "hone/db/roofline_store.h"
#include "hone/graph/import_onnx.h"
#include "hone/measure/sweep.h"
#include "hone/model/knowledge.h"
#include "hone/search/prediction.h"

namespace hone {
namespace {

// Records of a task that are looked at, fastest first, for one that still applies.
constexpr int kBestTried = 8;

constexpr double kFastTolerance = 1e-2;  // of the largest output, with constants of 16 bits
constexpr int kColdSamples = 15;         // emptying the caches takes longer than many a run

double least_flops(const compute::Dag& dag, const ModelTasks& model) {
  const Result<space::Space> space = space::Space::create(dag, model.target, model.accuracy);
  return space.ok() ? space->least_flops() : compute::flops(dag);
}

// All but the tasks.
Result<ModelTasks> for_device(const CompileOptions& options, CostModelPtr cost) {
  HONE_ASSERT(cost != nullptr, "tasks without a cost model");
  HONE_RETURN_IF_ERROR(check_options(options));
  ModelTasks model;
  model.cost = std::move(cost);
  HONE_ASSIGN_OR_RETURN(model.target, target::find(options.device));
  model.accuracy = *trial::parse_accuracy(options.accuracy);
  model.device = target::device_key(model.target);
  model.threads = options.threads > 0 ? options.threads : model.target.cores;
  return model;
}

// As `hone devices --measure` found it. One that cannot be read is none: whoever asks does without.
std::optional<trial::Roofline> stored_roofline(const CompileOptions& options,
                                               const std::string& device) {
  if (!options.use_db) return std::nullopt;
  auto roofline = db::load_roofline(options.db, device);
  return roofline.ok() ? *std::move(roofline) : std::nullopt;
}

void summarise(ModelTasks& model) {
  for (const graph::TaskGroup& group : model.tasks.groups) {
    const graph::TaskCall& call = model.tasks.calls[static_cast<size_t>(group.calls[0])];
    TaskSummary summary;
    summary.key = group.key;
    summary.name = call.name;
    summary.kernel_class = compute::kernel_class(call.dag);
    summary.multiplicity = static_cast<int>(group.calls.size());
    summary.flops = compute::flops(call.dag);
    summary.least_flops = least_flops(call.dag, model);
    summary.bytes = compute::bytes_moved(call.dag);
    model.summaries.push_back(std::move(summary));
  }
}

}  // namespace

Result<graph::Graph> import_model(const std::string& path, const CompileOptions& options,
                                  std::set<std::string>* files) {
  return graph::import_onnx_binding(path,
                                    {.shapes = options.shapes,
                                     .bind = options.bind,
                                     .linked_data = options.linked_data,
                                     .files = files},
                                    options.available);
}

db::BestQuery best_query(const ModelTasks& model, uint64_t key, const std::string& algorithm) {
  db::BestQuery query{
      .task = key, .device = model.device, .threads = model.threads, .algorithm = algorithm};
  query.accuracy = model.accuracy;
  query.limit = kBestTried;
  return query;
}

Result<std::vector<trial::Record>> best_stored(const ModelTasks& model, db::TrialStore& store,
                                               uint64_t key, const std::string& algorithm) {
  if (model.forgotten.contains(key)) return std::vector<trial::Record>();
  return store.best(best_query(model, key, algorithm));
}

Result<CostModelPtr> default_cost(const std::string& device) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::find(device));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<cost::CostModel> cost,
                        cost::make_model(cost::default_model(target)));
  return CostModelPtr(std::move(cost));
}

graph::PassOptions pass_options(const CompileOptions& options, const target::Target& target) {
  return {.skip = options.skip_passes,
          .also = options.also_passes,
          .later = {kRunTogether},
          .after_pass = options.after_pass,
          .lanes = target.lanes(4)};
}

Result<ModelTasks> make_tasks(graph::Graph graph, const CompileOptions& options,
                              const TaskKnowledge& knowledge) {
  HONE_ASSIGN_OR_RETURN(ModelTasks model, for_device(options, knowledge.cost));
  const ModelTasks* before = knowledge.before;
  model.roofline = before ? before->roofline : stored_roofline(options, model.device);
  graph::PassOptions passes = pass_options(options, model.target);
  passes.on_change = knowledge.on_change;
  HONE_RETURN_IF_ERROR(graph::optimize(graph, passes));
  model.name = graph.name;
  HONE_ASSIGN_OR_RETURN(model.forgotten, forgotten_tasks(options, model.target, knowledge.store));
  const bool forgets_itself = excludes(options, model.name);
  ThreadPool pool(target::host().cores);
  TaskChooser chooser({model.target, *model.cost, model.threads, model.accuracy, options.seed,
                       [&](uint64_t key) -> std::optional<double> {
                         if (knowledge.measured) {
                           if (const auto seconds = knowledge.measured(key)) return seconds;
                         }
                         if (knowledge.store == nullptr || forgets_itself) return std::nullopt;
                         const Result<std::vector<trial::Record>> best =
                             best_stored(model, *knowledge.store, key);
                         if (!best.ok() || best->empty()) return std::nullopt;
                         return (*best)[0].quiet_seconds();
                       },
                       before ? before->decisions : Decisions(), &pool});
  const auto join = [&](const compute::Dag& joined, const compute::Dag& first,
                        const compute::Dag& second) { return chooser.join(joined, first, second); };
  HONE_ASSIGN_OR_RETURN(model.tasks, graph::extract_tasks(graph, {.join = join}));
  model.alternatives = chooser.alternatives();
  model.decisions = chooser.decisions();
  model.own = chooser.weighed();
  for (const graph::TaskGroup& group : model.tasks.groups) model.own.insert(group.key);
  if (forgets_itself) model.forgotten.insert(model.own.begin(), model.own.end());
  summarise(model);
  model.graph = std::move(graph);
  return model;
}

Result<ModelTasks> make_stored_task(db::TrialStore& store, uint64_t key,
                                    const CompileOptions& options, CostModelPtr cost) {
  HONE_ASSIGN_OR_RETURN(ModelTasks model, for_device(options, std::move(cost)));
  db::Filter filter;
  filter.task = key;
  filter.with_task_text = true;
  filter.limit = 1;
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> records, store.query(filter));
  if (records.empty()) return error(Code::kNotFound, "the database has no task {}", hash_hex(key));
  Result<compute::Dag> dag = compute::parse_dag(records[0].task_text);
  if (!dag.ok()) {
    return error(Code::kUnsupported, "the database keeps task {} as no text that can be read: {}",
                 hash_hex(key), dag.status().message());
  }
  model.name = records[0].model;
  HONE_ASSIGN_OR_RETURN(model.forgotten, forgotten_tasks(options, model.target, &store));
  model.own = {key};
  model.tasks.groups = {{key, {0}}};
  model.tasks.calls.push_back({*std::move(dag), key, {}, {}, records[0].model, 0});
  summarise(model);
  return model;
}

search::SearchTask search_task(const ModelTasks& model, size_t group, const space::Space& space,
                               uint64_t seed) {
  return {&space, &model.target, model.cost.get(), model.threads, model.tasks.groups[group].key,
          seed};
}

search::TuneTask tune_task(const ModelTasks& model, size_t group,
                           std::optional<schedule::Steps> start) {
  const TaskSummary& summary = model.summaries[group];
  return {&model.dag(group), model.tasks.groups[group].key,
          static_cast<double>(summary.multiplicity), summary.name, std::move(start)};
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
  int64_t bytes = 0;
  for (const target::Cache& cache : target.caches) {
    if (cache.level <= 2) bytes = std::max(bytes, cache.bytes);
  }
  return bytes;
}

search::TaskContext task_context(const ModelTasks& model, uint64_t seed, int64_t packed_bytes) {
  search::TaskContext context;
  context.target = &model.target;
  context.model = model.cost.get();
  context.accuracy = model.accuracy;
  if (model.accuracy == trial::Accuracy::kFast) context.tolerance = kFastTolerance;
  context.device = model.device;
  context.version = kScheduleVersion;
  context.source = model.name;
  context.threads = model.threads;
  context.seed = seed;
  // Between two runs of a kernel the whole model's weights pass by. Whether what the cores' own
  // caches cannot hold stays in the last-level cache, which strangers may share, is tried out.
  const int64_t own_cache = own_cache_bytes(model.target);
  context.own_cache_bytes = own_cache;
  context.forgotten = &model.forgotten;
  const int64_t weights = std::max(weight_bytes(model), packed_bytes);
  if (weights > 2 * own_cache) {
    context.weights =
        measure::stays_in_cache(weights) ? measure::Weights::kShared : measure::Weights::kMemory;
    context.timing.max_samples = kColdSamples;
  }
  return context;
}

Result<double> predicted_seconds(const ModelTasks& model, size_t group,
                                 const schedule::Steps& steps) {
  const search::SearchTask task{.target = &model.target,
                                .model = model.cost.get(),
                                .threads = model.threads,
                                .key = model.tasks.groups[group].key};
  return search::predict_seconds(task, model.dag(group), steps);
}

}  // namespace hone
