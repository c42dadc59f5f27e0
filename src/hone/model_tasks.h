// model_tasks.h - a model ready to be compiled or tuned: its tasks and the device they are for
// (internal to the facade).
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "hone/assemble.h"
#include "hone/base/thread_pool.h"
#include "hone/choose_tasks.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/measure/roofline.h"
#include "hone/space/space.h"
#include "hone/tune.h"

namespace hone {

// Of compiler and space: what makes stored times and decisions comparable. A new decision (older
// points get its default) and code that is a few per cent faster for the same steps leave it as it
// is.
inline constexpr const char* kScheduleVersion = "0.2";

struct ModelTasks {
  std::string name;    // of the model
  graph::Graph graph;  // optimized
  graph::TaskList tasks;
  target::Target target;
  std::string device;  // target::device_key
  int threads = 1;
  space::Accuracy accuracy = space::Accuracy::kDefault;
  std::optional<measure::Roofline> roofline;  // of the device, where the database has one
  std::shared_ptr<cost::CostModel> cost;
  std::vector<TaskSummary> summaries;  // one per group, without schedules yet
  std::vector<Alternative> alternatives;
  std::set<uint64_t> own;        // its tasks, and those that may have taken their place
  std::set<uint64_t> forgotten;  // tasks whose records count as unknown (exclude_models)
  Decisions decisions;
  [[nodiscard]] const compute::Dag& dag(size_t group) const {
    return tasks.calls[static_cast<size_t>(tasks.groups[group].calls[0])].dag;
  }
};

[[nodiscard]] Result<graph::Graph> import_model(const std::string& path,
                                                const CompileOptions& options);
using CostModelPtr = std::shared_ptr<cost::CostModel>;
// The cost model of the options; an error if a name among them stands for nothing.
[[nodiscard]] Result<CostModelPtr> resolve_options(const CompileOptions& options);
// What else decides how a graph is divided into tasks.
struct TaskKnowledge {
  CostModelPtr cost = {};      // that resolve_options() made; null: it is asked
  db::Store* store = nullptr;  // of measured times; may be null
  Measured measured = {};      // asked first
  // Of the same options, may be null: its decisions hold, and its limits of the device.
  const ModelTasks* before = nullptr;
  graph::OnChange on_change = {};
};
[[nodiscard]] Result<ModelTasks> make_tasks(graph::Graph graph, const CompileOptions& options,
                                            const TaskKnowledge& knowledge = {});
// One task of the database instead of a model's, built again from its text.
[[nodiscard]] Result<ModelTasks> make_stored_task(db::Store& store, uint64_t key,
                                                  const CompileOptions& options, CostModelPtr cost);
// An error if the folder of `path` is missing or cannot be written, or the prefix cannot be used.
[[nodiscard]] Status check_output(const std::string& path, const CompileOptions& options);
[[nodiscard]] bool is_static_library(const std::string& path, const CompileOptions& options);
// The task of a group as cost models and searches see it; `space` is the group's.
[[nodiscard]] search::SearchTask search_task(const ModelTasks& model, size_t group,
                                             const space::Space& space, uint64_t seed);
// ... and as a tuner does; points into `model`.
[[nodiscard]] search::TuneTask tune_task(const ModelTasks& model, size_t group,
                                         std::optional<schedule::Steps> start = {});

// Of all weights, equal ones once, before they are packed.
[[nodiscard]] int64_t constant_bytes(const graph::TaskList& tasks);
// Of a core: the largest cache that it does not share with many.
[[nodiscard]] int64_t own_cache_bytes(const target::Target& target);
// What the measuring of all tasks has in common; points into `model`.
[[nodiscard]] search::TaskContext task_context(const ModelTasks& model, uint64_t seed);
// Finds the best record of a task on the model's device that its accuracy and the algorithm, if one
// is given, allow.
[[nodiscard]] db::BestQuery best_query(const ModelTasks& model, uint64_t key,
                                       const std::string& algorithm);
// That record; an empty list if there is none or the task is forgotten.
[[nodiscard]] Result<std::vector<db::Record>> best_stored(const ModelTasks& model, db::Store& store,
                                                          uint64_t key,
                                                          const std::string& algorithm = "");

// By the model's cost model.
[[nodiscard]] Result<double> predicted_seconds(const ModelTasks& model, size_t group,
                                               const schedule::Steps& steps);
// The name in CompileOptions::skip_passes by which kernels run one by one.
inline constexpr const char* kRunTogether = "run_together";
// Kernels of these schedules, with those together that gain by it. A schedule whose code is too
// long gives way to another one (short_code.h).
[[nodiscard]] Result<Assembly> assemble_model(ModelTasks& model,
                                              std::vector<schedule::Steps>& schedules,
                                              const CompileOptions& options, ThreadPool& pool);

struct Written {
  int64_t bytes = 0;
  double seconds = 0;                   // to compile, pack, link and write
  double assembly = 0;                  // of them, to compile and pack
  int64_t arena_bytes = 0;              // while it runs
  int64_t memory_bytes = 0;             // ModelMemory
  int calls = 0, turns = 0, small = 0;  // of CompileSummary
};
[[nodiscard]] Result<Written> write_model(ModelTasks& model,
                                          std::vector<schedule::Steps>& schedules,
                                          const std::string& output, const CompileOptions& options,
                                          ThreadPool& pool);
// Its second half; `start`: when the first began.
[[nodiscard]] Result<Written> link_model(const ModelTasks& model, Assembly assembly,
                                         const std::string& output, const CompileOptions& options,
                                         double start);

}  // namespace hone
