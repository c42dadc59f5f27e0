#include "hone/model_tasks.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "hone/assemble.h"
#include "hone/base/cancel.h"
#include "hone/base/file.h"
#include "hone/base/log.h"
#include "hone/cost/registry.h"
#include "hone/db/registry.h"
#include "hone/graph/import_onnx.h"
#include "hone/search/prediction.h"

namespace hone {

Result<graph::Graph> import_model(const std::string& path, const CompileOptions& options) {
  return graph::import_onnx_binding(path, {.shapes = options.shapes, .bind = options.bind},
                                    options.available);
}

namespace {

// The best record of a task on the model's device; an empty list if there is none.
Result<std::vector<db::Record>> best_stored(const ModelTasks& model, db::Store& store,
                                            uint64_t key) {
  return store.best({.task = key,
                     .device = model.device,
                     .threads = model.threads,
                     .algorithm = model.accuracy == space::Accuracy::kStrict ? "direct" : ""});
}

}  // namespace

Status check_options(const CompileOptions& options) {
  HONE_RETURN_IF_ERROR(target::find(options.device).status());
  HONE_RETURN_IF_ERROR(cost::make_model(options.cost).status());
  if (options.accuracy != "default" && options.accuracy != "strict")
    return invalid("accuracy '{}', expected default or strict", options.accuracy);
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
                         const auto best = best_stored(model, *knowledge.store, key);
                         return best.ok() && !best->empty()
                                    ? std::optional((*best)[0].quiet_seconds())
                                    : std::nullopt;
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

Result<std::unique_ptr<db::Store>> open_for_reading(const CompileOptions& options) {
  if (!options.use_db) return std::unique_ptr<db::Store>();
  std::string where = options.db;
  if (where.empty()) {  // having none is no error then
    const Result<std::string> path = db::default_path();
    if (!path.ok() || !file_exists(*path)) return std::unique_ptr<db::Store>();
    where = *path;
  }
  return db::open_store(where, {.read_only = true, .create = false});
}

Result<std::vector<schedule::Steps>> known_schedules(ModelTasks& model, db::Store* store,
                                                     uint64_t seed, ThreadPool& pool) {
  const size_t count = model.tasks.groups.size();
  std::vector<schedule::Steps> schedules(count);
  for (size_t g = 0; store && g < count; ++g) {
    HONE_ASSIGN_OR_RETURN(const std::vector<db::Record> best,
                          best_stored(model, *store, model.tasks.groups[g].key));
    if (best.empty()) continue;
    Result<schedule::Steps> steps = schedule::parse_steps(best[0].steps);
    if (!steps.ok() || !schedule::replay(model.dag(g), *steps).ok())
      continue;  // of another version
    schedules[g] = std::move(steps).value();
    model.summaries[g].source = "stored";
    model.summaries[g].seconds = best[0].quiet_seconds();
  }
  std::vector<Status> statuses(count);
  pool.parallel_for(static_cast<int64_t>(count), [&](int64_t i) {
    const auto g = static_cast<size_t>(i);
    TaskSummary& summary = model.summaries[g];
    if (summary.source == "stored") return;
    const Result<space::Space> space =
        space::Space::create(model.dag(g), model.target, model.accuracy);
    if (!space.ok()) {
      statuses[g] = space.status();
      return;
    }
    const search::SearchTask task{
        &*space, &model.target, model.cost.get(), model.threads, model.tasks.groups[g].key, seed};
    const search::Predicted predicted = search::best_predicted(task);
    schedules[g] = space->steps(predicted.point);
    summary.source = predicted.point == space->default_point() ? "default" : "predicted";
    summary.predicted_seconds = predicted.seconds;
  });
  for (size_t g = 0; g < count; ++g) {
    if (!statuses[g].ok())
      return error(statuses[g].code(), "{}: {}", model.summaries[g].name, statuses[g].message());
    model.summaries[g].steps = schedule::to_string(schedules[g]);
  }
  return schedules;
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
