// model_tasks.h - a model ready to be compiled or tuned: its tasks and the device they are for.
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/model/choose_tasks.h"
#include "hone/model/compile_options.h"
#include "hone/model/schedule_version.h"
#include "hone/model/summary.h"
#include "hone/search/tune_tasks.h"
#include "hone/space/space.h"
#include "hone/trial/roofline.h"

namespace hone {

using CostModelPtr = std::shared_ptr<cost::CostModel>;

struct ModelTasks {
  std::string name;    // of the model
  graph::Graph graph;  // optimized
  graph::TaskList tasks;
  target::Target target;
  std::string device;  // target::device_key
  int threads = 1;
  trial::Accuracy accuracy = trial::Accuracy::kDefault;
  std::optional<trial::Roofline> roofline;  // of the device, where the database has one
  CostModelPtr cost;
  std::vector<TaskSummary> summaries;  // one per group, without schedules yet
  std::vector<Alternative> alternatives;
  std::set<uint64_t> own;        // its tasks, and those that may have taken their place
  std::set<uint64_t> forgotten;  // tasks whose records count as unknown (exclude_models)
  Decisions decisions;
  [[nodiscard]] const compute::Dag& dag(size_t group) const {
    return tasks.calls[static_cast<size_t>(tasks.groups[group].calls[0])].dag;
  }
};

// `files`: if not null, receives the files that are read (graph::ImportOptions).
[[nodiscard]] Result<graph::Graph> import_model(const std::string& path,
                                                const CompileOptions& options,
                                                std::set<std::string>* files = nullptr);

// The cost model for that device where no other is named.
[[nodiscard]] Result<CostModelPtr> default_cost(const std::string& device);

// What else decides how a graph is divided into tasks.
struct TaskKnowledge {
  CostModelPtr cost = {};           // that CompileOptions::cost names
  db::TrialStore* store = nullptr;  // of measured times; may be null
  Measured measured = {};           // asked first
  // Of the same options, may be null: its decisions hold, and its limits of the device.
  const ModelTasks* before = nullptr;
  graph::OnChange on_change = {};
};
// How the passes run over a graph for a device.
[[nodiscard]] graph::PassOptions pass_options(const CompileOptions& options,
                                              const target::Target& target);
[[nodiscard]] Result<ModelTasks> make_tasks(graph::Graph graph, const CompileOptions& options,
                                            const TaskKnowledge& knowledge);
// One task of the database instead of a model's, built again from its text.
[[nodiscard]] Result<ModelTasks> make_stored_task(db::TrialStore& store, uint64_t key,
                                                  const CompileOptions& options, CostModelPtr cost);
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
// What the measuring of all tasks has in common; points into `model`. `packed_bytes`: of all
// weights as its kernels read them, where that is known: Winograd's are several times as many.
[[nodiscard]] search::TaskContext task_context(const ModelTasks& model, uint64_t seed,
                                               int64_t packed_bytes = 0);
// Finds the best record of a task on the model's device that its accuracy and the algorithm, if one
// is given, allow.
[[nodiscard]] db::BestQuery best_query(const ModelTasks& model, uint64_t key,
                                       const std::string& algorithm);
// That record; an empty list if there is none or the task is forgotten.
[[nodiscard]] Result<std::vector<trial::Record>> best_stored(const ModelTasks& model,
                                                             db::TrialStore& store, uint64_t key,
                                                             const std::string& algorithm = "");

// By the model's cost model.
[[nodiscard]] Result<double> predicted_seconds(const ModelTasks& model, size_t group,
                                               const schedule::Steps& steps);
// The name in CompileOptions::skip_passes by which kernels run one by one.
inline constexpr const char* kRunTogether = "run_together";

}  // namespace hone
