// model_tasks.h - a model ready to be compiled or tuned: its tasks, the device they are for and the
// schedules that are known without measuring (internal to the facade).
#pragma once

#include <memory>

#include "hone/base/thread_pool.h"
#include "hone/choose_tasks.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/space/space.h"
#include "hone/tune.h"

namespace hone {

// Of compiler and space: what makes stored times and decisions comparable.
inline constexpr const char* kScheduleVersion = "0.2";

struct ModelTasks {
  std::string name;    // of the model
  graph::Graph graph;  // optimized
  graph::TaskList tasks;
  target::Target target;
  std::string device;  // target::device_key
  int threads = 1;
  space::Accuracy accuracy = space::Accuracy::kDefault;
  std::unique_ptr<cost::CostModel> cost;
  std::vector<TaskSummary> summaries;  // one per group, without schedules yet
  std::vector<Alternative> alternatives;
  Decisions decisions;
  [[nodiscard]] const compute::Dag& dag(size_t group) const {
    return tasks.calls[static_cast<size_t>(tasks.groups[group].calls[0])].dag;
  }
};

[[nodiscard]] Result<graph::Graph> import_model(const std::string& path,
                                                const CompileOptions& options);
// What else decides how a graph is divided into tasks.
struct TaskKnowledge {
  db::Store* store = nullptr;  // of measured times; may be null
  Measured measured = {};      // asked first
  Decisions decided = {};      // before
  graph::OnChange on_change = {};
};
[[nodiscard]] Result<ModelTasks> make_tasks(graph::Graph graph, const CompileOptions& options,
                                            const TaskKnowledge& knowledge = {});
// An error if a name among the options stands for nothing.
[[nodiscard]] Status check_options(const CompileOptions& options);
// An error if the folder of `path` is missing or cannot be written, or the prefix cannot be used.
[[nodiscard]] Status check_output(const std::string& path, const CompileOptions& options);
[[nodiscard]] bool is_static_library(const std::string& path, const CompileOptions& options);
// Null if there is none to read from.
[[nodiscard]] Result<std::unique_ptr<db::Store>> open_for_reading(const CompileOptions& options);

// Per group: the best stored, else the best predicted schedule. Fills in the summaries.
[[nodiscard]] Result<std::vector<schedule::Steps>> known_schedules(ModelTasks& model,
                                                                   db::Store* store, uint64_t seed,
                                                                   ThreadPool& pool);

struct Written {
  int64_t bytes = 0;
  double seconds = 0;       // to compile, pack, link and write
  int64_t arena_bytes = 0;  // while it runs
};
[[nodiscard]] Result<Written> write_model(const ModelTasks& model,
                                          std::span<const schedule::Steps> schedules,
                                          const std::string& output, const CompileOptions& options,
                                          ThreadPool& pool);

}  // namespace hone
