#include "hone/model_tasks.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "hone/assemble.h"
#include "hone/base/cancel.h"
#include "hone/base/file.h"
#include "hone/base/log.h"
#include "hone/cost/registry.h"
#include "hone/graph/import_onnx.h"
#include "hone/measure/sweep.h"

namespace hone {

Result<graph::Graph> import_model(const std::string& path, const CompileOptions& options) {
  return graph::import_onnx_binding(path, {.shapes = options.shapes, .bind = options.bind},
                                    options.available);
}

namespace {

// The best measured seconds of a task on the model's device.
std::optional<double> stored_seconds(const ModelTasks& model, const CompileOptions& options,
                                     db::Store& store, uint64_t key) {
  if (excludes(options, model.name)) return std::nullopt;
  const Result<std::vector<db::Record>> best =
      store.best({.task = key,
                  .device = model.device,
                  .threads = model.threads,
                  .algorithm = model.accuracy == space::Accuracy::kStrict ? "direct" : ""});
  if (!best.ok() || best->empty() || excludes(options, (*best)[0].model)) return std::nullopt;
  return (*best)[0].quiet_seconds();
}

}  // namespace

bool excludes(const CompileOptions& options, const std::string& model) {
  return std::count(options.exclude_models.begin(), options.exclude_models.end(), model) > 0;
}

Status check_options(const CompileOptions& options) {
  HONE_RETURN_IF_ERROR(target::find(options.device).status());
  HONE_RETURN_IF_ERROR(cost::make_model(options.cost).status());
  if (options.accuracy != "default" && options.accuracy != "strict")
    return invalid("accuracy '{}', expected default or strict", options.accuracy);
  if (options.transfer != "pool" && options.transfer != "one" && options.transfer != "off")
    return invalid("transfer '{}', expected pool, one or off", options.transfer);
  return ok_status();
}

Result<ModelTasks> make_tasks(graph::Graph graph, const CompileOptions& options,
                              const TaskKnowledge& knowledge) {
  HONE_RETURN_IF_ERROR(check_options(options));
  ModelTasks model;
  HONE_ASSIGN_OR_RETURN(model.target, target::find(options.device));
  HONE_ASSIGN_OR_RETURN(model.cost, cost::make_model(options.cost));
  if (options.accuracy == "strict") model.accuracy = space::Accuracy::kStrict;
  model.device = target::device_key(model.target);
  model.threads = options.threads > 0 ? options.threads : model.target.cores;
  HONE_RETURN_IF_ERROR(
      graph::optimize(graph, {.skip = options.skip_passes, .on_change = knowledge.on_change}));
  model.name = graph.name;
  TaskChooser chooser({model.target, *model.cost, model.threads, model.accuracy, options.seed,
                       [&](uint64_t key) -> std::optional<double> {
                         if (knowledge.measured) {
                           if (const auto seconds = knowledge.measured(key)) return seconds;
                         }
                         if (knowledge.store == nullptr) return std::nullopt;
                         return stored_seconds(model, options, *knowledge.store, key);
                       },
                       knowledge.decided});
  const auto join = [&](const compute::Dag& joined, const compute::Dag& first,
                        const compute::Dag& second) { return chooser.join(joined, first, second); };
  HONE_ASSIGN_OR_RETURN(model.tasks, graph::extract_tasks(graph, {.join = join}));
  model.alternatives = chooser.alternatives();
  model.decisions = chooser.decisions();
  for (const graph::TaskGroup& group : model.tasks.groups) {
    const graph::TaskCall& call = model.tasks.calls[static_cast<size_t>(group.calls[0])];
    TaskSummary summary;
    summary.name = call.name;
    summary.kernel_class = compute::kernel_class(call.dag);
    summary.multiplicity = static_cast<int>(group.calls.size());
    summary.flops = compute::flops(call.dag);
    model.summaries.push_back(std::move(summary));
  }
  model.graph = std::move(graph);
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

int64_t constant_bytes(const graph::TaskList& tasks) {
  int64_t bytes = 0;
  for (const Tensor& constant : tasks.constants) bytes += constant.bytes();
  return bytes;
}

search::TaskContext task_context(const ModelTasks& model, uint64_t seed) {
  constexpr int kColdSamples = 15;  // emptying the caches takes longer than many a run
  search::TaskContext context;
  context.target = &model.target;
  context.model = model.cost.get();
  context.accuracy = model.accuracy;
  context.device = model.device;
  context.version = kScheduleVersion;
  context.source = model.name;
  context.threads = model.threads;
  context.seed = seed;
  // Between two runs of a kernel the whole model's weights pass by. Whether what the cores' own
  // caches cannot hold stays in the last-level cache, which strangers may share, is tried out.
  int64_t own_cache = 0;
  for (const target::Cache& cache : model.target.caches) {
    if (cache.level <= 2) own_cache = std::max(own_cache, cache.bytes);
  }
  context.own_cache_bytes = own_cache;
  const int64_t weights = constant_bytes(model.tasks);
  if (weights > 2 * own_cache) {
    context.weights =
        measure::stays_in_cache(weights) ? measure::Weights::kShared : measure::Weights::kMemory;
    context.timing.max_samples = kColdSamples;
  }
  return context;
}

Result<Written> write_model(const ModelTasks& model, std::span<const schedule::Steps> schedules,
                            const std::string& output, const CompileOptions& options,
                            ThreadPool& pool) {
  const double start = real_clock().now_seconds();
  HONE_ASSIGN_OR_RETURN(Assembly assembly,
                        assemble(model.tasks, schedules, model.target, pool, options.interrupted));
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
  std::error_code ignored;
  written.bytes = static_cast<int64_t>(std::filesystem::file_size(output, ignored));
  written.seconds = real_clock().now_seconds() - start;
  written.arena_bytes = assembly.spec.arena_bytes;
  return written;
}

}  // namespace hone
