// session/model_tasks.h - a model ready to be compiled or tuned: its graph and its tasks.
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/search/tune_tasks.h"
#include "hone/session/choose_tasks.h"
#include "hone/session/session.h"
#include "hone/session/summary.h"

namespace hone {

struct ModelTasks {
  Session* session = nullptr;  // it outlives the model
  std::string name;            // of the model
  graph::Graph graph;          // optimized
  graph::TaskList tasks;
  std::vector<TaskPtr> distinct;       // one per TaskList::groups
  std::vector<TaskSummary> summaries;  // one per group, without schedules yet
  std::vector<Alternative> alternatives;
  std::set<uint64_t> own;        // its tasks, and those that may have taken their place
  std::set<uint64_t> forgotten;  // tasks whose records count as unknown (exclude_models)
  Decisions decisions;
  [[nodiscard]] const target::Target& target() const { return session->target(); }
  [[nodiscard]] const std::string& device() const { return session->device(); }
  [[nodiscard]] int threads() const { return session->threads(); }
  [[nodiscard]] trial::Accuracy accuracy() const { return session->accuracy(); }
  [[nodiscard]] const CostModelPtr& cost() const { return session->cost(); }
  [[nodiscard]] const Task& task(size_t group) const { return *distinct[group]; }
  [[nodiscard]] const compute::Dag& dag(size_t group) const { return task(group).dag(); }
  // The schedules of a group that the session's accuracy allows.
  [[nodiscard]] const Result<space::Space>& space(size_t group) const {
    return task(group).space(accuracy());
  }
};

// `files`: if not null, receives the files that are read (graph::ImportOptions).
[[nodiscard]] Result<graph::Graph> import_model(const std::string& path,
                                                const CompileOptions& options,
                                                std::set<std::string>* files = nullptr);

// The cost model for that device where no other is named.
[[nodiscard]] Result<CostModelPtr> default_cost(const std::string& device);

// How the passes run over a graph for a device.
[[nodiscard]] graph::PassOptions pass_options(const CompileOptions& options,
                                              const target::Target& target);
[[nodiscard]] Result<ModelTasks> make_tasks(Session& session, graph::Graph graph,
                                            const CompileOptions& options,
                                            const graph::OnChange& on_change = {});
// The same model once something was measured: where it may be doubted whether two tasks are to be
// one, `measured` is asked before the store. The passes do not run again.
[[nodiscard]] Result<ModelTasks> divide_again(const ModelTasks& before,
                                              const CompileOptions& options,
                                              const Measured& measured);
// One task of the session's store, which it has, instead of a model's, built again from its text.
[[nodiscard]] Result<ModelTasks> make_stored_task(Session& session, uint64_t key,
                                                  const CompileOptions& options);
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
