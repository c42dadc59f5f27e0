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
#include "hone/summary.h"

namespace hone {

struct ModelTasks {
  Session* session = nullptr;  // it outlives the model
  std::string name;            // name of the model
  graph::Graph graph;          // after all passes
  graph::TaskList tasks;
  std::vector<TaskPtr> distinct;          // one per TaskList::groups
  std::vector<TaskSummary> summaries;     // one per group, without schedules at first
  std::vector<Alternative> alternatives;  // tasks that a tuner measures, too
  std::set<uint64_t> own;       // keys of its tasks and of all tasks that took part in a choice
  std::set<uint64_t> excluded;  // keys of tasks whose records are ignored (exclude_models)
  Decisions decisions;
  RefineSummary refined;
  [[nodiscard]] const target::Target& target() const { return session->target(); }
  [[nodiscard]] const std::string& device() const { return session->device(); }
  [[nodiscard]] int threads() const { return session->threads(); }
  [[nodiscard]] trial::Accuracy accuracy() const { return session->accuracy(); }
  [[nodiscard]] const CostModelPtr& cost() const { return session->cost(); }
  [[nodiscard]] const Task& task(size_t group) const { return *distinct[group]; }
  [[nodiscard]] const compute::Dag& dag(size_t group) const { return task(group).dag(); }
  // Returns the space of a group's schedules that the session's accuracy allows.
  [[nodiscard]] const Result<space::Space>& space(size_t group) const {
    return task(group).space(accuracy());
  }
};

// Returns whether a run may not have all rows of what the group's calls read or write: sizes vary,
// or data decide how many rows there are. Then no schedule may compute sums of rows.
[[nodiscard]] bool may_lack_rows(const ModelTasks& model, size_t group);

// Imports an ONNX model. If `files` is not null, it receives the files that are read
// (graph::ImportOptions).
[[nodiscard]] Result<graph::Graph> import_model(const std::string& path,
                                                const CompileOptions& options,
                                                std::set<std::string>* files = nullptr);

// Returns the options of the passes over a graph for a device.
[[nodiscard]] graph::PassOptions pass_options(const CompileOptions& options,
                                              const target::Target& target);
// Runs the passes over a graph and divides it into tasks.
[[nodiscard]] Result<ModelTasks> make_tasks(Session& session, graph::Graph graph,
                                            const CompileOptions& options,
                                            const graph::OnChange& on_change = {});
// Divides the same model into tasks again after something was measured. Only doubtful decisions are
// made again, and `measured` is asked before the store. The passes do not run again.
[[nodiscard]] Result<ModelTasks> divide_again(const ModelTasks& before,
                                              const CompileOptions& options,
                                              const Measured& measured);
// Returns a single task of the session's store, which must not be null, in place of a model's
// tasks. It is built from the text in its record.
[[nodiscard]] Result<ModelTasks> make_stored_task(Session& session, uint64_t key,
                                                  const CompileOptions& options);
// Returns the task of a group in the form that cost models and searches take. `space` is the
// group's. Predictions are divided among the session's threads, also where the call is one of many
// that these work on.
[[nodiscard]] search::SearchTask search_task(const ModelTasks& model, size_t group,
                                             const space::Space& space, uint64_t seed);
// Returns the task of a group in the form that a tuner takes. The result points into `model`.
[[nodiscard]] search::TuneTask tune_task(const ModelTasks& model, size_t group,
                                         std::optional<schedule::Steps> start = {});
// Returns what a tuner asks for the programs of a task that the session has made already.
[[nodiscard]] std::function<search::ProgramPtr(const schedule::Steps&)> lowered_in(
    Session& session, const TaskPtr& task);
// Keeps the programs of the schedules that a search has found, for the libraries that are made of
// them.
void keep_programs(Session& session, const TaskPtr& task, const search::TunedTask& tuned);

// Returns the bytes of all weights before they are packed. Equal weights count once.
[[nodiscard]] int64_t constant_bytes(const graph::TaskList& tasks);
// Returns the bytes of a core's largest cache of level 1 or 2, which few cores share.
[[nodiscard]] int64_t own_cache_bytes(const target::Target& target);
// Returns the context that the measurements of all tasks share. It points into `model`.
// `packed_bytes` is the size of all weights as the kernels read them, if it is known; Winograd's
// weights are several times larger.
[[nodiscard]] search::TaskContext task_context(const ModelTasks& model, uint64_t seed,
                                               int64_t packed_bytes = 0);
// Returns a query for the best records of a task on the model's device that its accuracy allows and
// that have the algorithm, if that is not empty.
[[nodiscard]] db::BestQuery best_query(const ModelTasks& model, uint64_t key,
                                       const std::string& algorithm);
// Returns the records that this query finds, the fastest first. The list is empty if there are none
// or the task is excluded.
[[nodiscard]] Result<std::vector<trial::Record>> best_stored(const ModelTasks& model,
                                                             db::TrialStore& store, uint64_t key,
                                                             const std::string& algorithm = "");

// Returns the seconds that the session's cost model predicts.
[[nodiscard]] Result<double> predicted_seconds(const ModelTasks& model, size_t group,
                                               const schedule::Steps& steps);
// The name in CompileOptions::skip_passes with which kernels run one by one.
inline constexpr const char* kRunTogether = "run_together";

}  // namespace hone
