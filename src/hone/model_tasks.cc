#include "hone/model_tasks.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "hone/analysis/cpu_measure.h"
#include "hone/base/cancel.h"
#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/base/log.h"
#include "hone/compute/bytes_moved.h"
#include "hone/compute/dag_text.h"
#include "hone/db/roofline_store.h"
#include "hone/graph/import_onnx.h"
#include "hone/knowledge.h"
#include "hone/measure/sweep.h"
#include "hone/neural_model.h"
#include "hone/search/prediction.h"
#include "hone/short_code.h"

namespace hone {
namespace {

// Records of a task that are looked at, fastest first, for one that still applies.
constexpr int kBestTried = 8;

constexpr double kFastTolerance = 1e-2;  // of the largest output, with constants of 16 bits
// Of intermediate tensors, so that kernels run together: little beside the weights, and enough for
// most of them.
constexpr double kArenaGrowth = 1.125;
constexpr int kColdSamples = 15;  // emptying the caches takes longer than many a run

double least_flops(const compute::Dag& dag, const ModelTasks& model) {
  const Result<space::Space> space = space::Space::create(dag, model.target, model.accuracy);
  return space.ok() ? space->least_flops() : compute::flops(dag);
}

// All but the tasks.
Result<ModelTasks> for_device(const CompileOptions& options, CostModelPtr cost) {
  ModelTasks model;
  model.cost = std::move(cost);
  if (model.cost == nullptr) {
    HONE_ASSIGN_OR_RETURN(model.cost, resolve_options(options));
  }
  HONE_ASSIGN_OR_RETURN(model.target, target::find(options.device));
  model.accuracy = *space::parse_accuracy(options.accuracy);
  model.device = target::device_key(model.target);
  model.threads = options.threads > 0 ? options.threads : model.target.cores;
  return model;
}

// As `hone devices --measure` found it. One that cannot be read is none: whoever asks does without.
std::optional<measure::Roofline> stored_roofline(const CompileOptions& options,
                                                 const std::string& device) {
  if (!options.use_db) return std::nullopt;
  auto roofline = db::load_roofline(options.db, device);
  return roofline.ok() ? *std::move(roofline) : std::nullopt;
}

void summarise(ModelTasks& model) {
  for (const graph::TaskGroup& group : model.tasks.groups) {
    const graph::TaskCall& call = model.tasks.calls[static_cast<size_t>(group.calls[0])];
    TaskSummary summary;
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

Result<graph::Graph> import_model(const std::string& path, const CompileOptions& options) {
  return graph::import_onnx_binding(path, {.shapes = options.shapes, .bind = options.bind},
                                    options.available);
}

db::BestQuery best_query(const ModelTasks& model, uint64_t key, const std::string& algorithm) {
  db::BestQuery query{
      .task = key, .device = model.device, .threads = model.threads, .algorithm = algorithm};
  query.accuracy = model.accuracy;
  query.limit = kBestTried;
  return query;
}

Result<std::vector<db::Record>> best_stored(const ModelTasks& model, db::Store& store, uint64_t key,
                                            const std::string& algorithm) {
  if (model.forgotten.contains(key)) return std::vector<db::Record>();
  return store.best(best_query(model, key, algorithm));
}

Result<CostModelPtr> resolve_options(const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::find(options.device));
  if (!space::parse_accuracy(options.accuracy))
    return invalid("accuracy '{}', expected strict, default or fast", options.accuracy);
  if (options.transfer != "pool" && options.transfer != "one" && options.transfer != "off")
    return invalid("transfer '{}', expected pool, one or off", options.transfer);
  const std::string name =
      options.cost == cost::kAutoModel ? cost::default_model(target) : options.cost;
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<cost::CostModel> cost,
                        make_cost_model({name, options.db, options.use_db, options.adapt, ""}));
  return CostModelPtr(std::move(cost));
}

Result<ModelTasks> make_tasks(graph::Graph graph, const CompileOptions& options,
                              const TaskKnowledge& knowledge) {
  HONE_ASSIGN_OR_RETURN(ModelTasks model, for_device(options, knowledge.cost));
  const ModelTasks* before = knowledge.before;
  model.roofline = before ? before->roofline : stored_roofline(options, model.device);
  HONE_RETURN_IF_ERROR(graph::optimize(graph, {.skip = options.skip_passes,
                                               .later = {kRunTogether},
                                               .on_change = knowledge.on_change,
                                               .lanes = model.target.lanes(4)}));
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
                         const Result<std::vector<db::Record>> best =
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

Result<ModelTasks> make_stored_task(db::Store& store, uint64_t key, const CompileOptions& options,
                                    CostModelPtr cost) {
  HONE_ASSIGN_OR_RETURN(ModelTasks model, for_device(options, std::move(cost)));
  db::Filter filter;
  filter.task = key;
  filter.with_task_text = true;
  filter.limit = 1;
  HONE_ASSIGN_OR_RETURN(const std::vector<db::Record> records, store.query(filter));
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

bool is_static_library(const std::string& path, const CompileOptions& options) {
  return options.static_library || std::filesystem::path(path).extension() == ".a";
}

Status check_output(const std::string& path, const CompileOptions& options) {
  namespace fs = std::filesystem;
  HONE_RETURN_IF_ERROR(codegen::check_prefix(options.prefix));
  std::error_code ignored;
  if (path.empty()) return invalid("the output has no name, expected a file");
  if (fs::is_directory(path, ignored))
    return invalid("output {} is a folder, expected a file", path);
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, ignored))
    return error(Code::kNotFound, "output {}: there is no folder {}", path, folder.string());
  // Only trying tells: access() promises root too much, as in /proc or on a full disk.
  std::string probe = (folder / ".hone-XXXXXX").string();
  if (mkdtemp(probe.data()) == nullptr)
    return error(Code::kIo, "output {}: {}", path, errno_text(errno));
  rmdir(probe.c_str());
  return ok_status();
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

search::TaskContext task_context(const ModelTasks& model, uint64_t seed) {
  search::TaskContext context;
  context.target = &model.target;
  context.model = model.cost.get();
  context.accuracy = model.accuracy;
  if (model.accuracy == space::Accuracy::kFast) context.tolerance = kFastTolerance;
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
  const int64_t weights = weight_bytes(model);
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

namespace {

// By predicted times, also where others are known: the same schedules give the same library.
Result<TogetherOptions> together_options(const ModelTasks& model,
                                         std::span<const schedule::Steps> schedules,
                                         const CompileOptions& options) {
  TogetherOptions together{.threads = model.threads};
  const auto& skipped = options.skip_passes;
  if (std::count(skipped.begin(), skipped.end(), kRunTogether) > 0 || model.threads == 1)
    return together;
  // As it was measured here, else the cost model's.
  together.fork_join = {{model.threads, analysis::kForkJoinSeconds}};
  if (model.roofline && !model.roofline->fork_join.empty())
    together.fork_join = model.roofline->fork_join;
  if (options.max_memory == 0) together.arena = {kArenaGrowth, own_cache_bytes(model.target) / 2};
  for (size_t g = 0; g < schedules.size(); ++g) {
    HONE_ASSIGN_OR_RETURN(const double seconds, predicted_seconds(model, g, schedules[g]));
    together.seconds.push_back(seconds);
  }
  return together;
}

}  // namespace

Result<Assembly> assemble_model(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                                const CompileOptions& options, ThreadPool& pool) {
  const auto once = [&]() -> Result<Assembly> {
    HONE_ASSIGN_OR_RETURN(const TogetherOptions together,
                          together_options(model, schedules, options));
    return assemble(model.tasks, schedules, model.target, pool, options.interrupted, together);
  };
  Result<Assembly> assembly = once();
  if (assembly.status().code() != Code::kUnsupported) return assembly;
  HONE_ASSIGN_OR_RETURN(const bool changed, shorten_code(model, schedules, options, pool));
  return changed ? once() : std::move(assembly);
}

Result<Written> write_model(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                            const std::string& output, const CompileOptions& options,
                            ThreadPool& pool) {
  const double start = real_clock().now_seconds();
  HONE_ASSIGN_OR_RETURN(Assembly assembly, assemble_model(model, schedules, options, pool));
  return link_model(model, std::move(assembly), output, options, start);
}

Result<Written> link_model(const ModelTasks& model, Assembly assembly, const std::string& output,
                           const CompileOptions& options, double start) {
  for (size_t i = 0; i < assembly.calls.size(); ++i) {
    const graph::TaskCall& call = model.tasks.calls[static_cast<size_t>(assembly.calls[i])];
    codegen::ArtifactStep& step = assembly.spec.steps[i];
    if (step.bytes > 0)
      step.least_flops = model.summaries[static_cast<size_t>(call.group)].least_flops;
  }
  const double assembled = real_clock().now_seconds();
  assembly.spec.name = model.name;
  assembly.spec.prefix = options.prefix;
  const Status linked = is_static_library(output, options)
                            ? codegen::write_static_library(assembly.spec, output)
                            : codegen::write_shared_library(assembly.spec, output);
  if (!linked.ok()) {  // the terminal interrupts the linker too
    HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
    return linked;
  }
  if (options.header) {
    const std::string header = std::filesystem::path(output).replace_extension(".h").string();
    HONE_RETURN_IF_ERROR(codegen::write_header(assembly.spec, header));
  }
  Written written;
  written.assembly = assembled - start;
  written.memory_bytes = memory_of(assembly.spec, model.threads).total();
  std::error_code ignored;
  written.bytes = static_cast<int64_t>(std::filesystem::file_size(output, ignored));
  written.seconds = real_clock().now_seconds() - start;
  written.arena_bytes = assembly.spec.arena_bytes;
  written.calls = static_cast<int>(assembly.plan.moments.size());
  written.turns = assembly.turns;
  written.small = assembly.small;
  return written;
}

}  // namespace hone
