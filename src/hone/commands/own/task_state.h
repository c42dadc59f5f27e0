// own/task_state.h - the inside of a ModelTask (hone/model_task.h): of a model that was opened, or
// of a search that runs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "hone/model_task.h"
#include "hone/search/searcher.h"
#include "hone/session/assemble_limited.h"

namespace hone {

// Cost models by name or file, each made when it is first asked for.
class NamedModels {
 public:
  // `db` is the database beside which nets are compiled; none if it is null.
  explicit NamedModels(const std::string* db) : uses_db_(db != nullptr), db_(db ? *db : "") {}
  // It is an error if the model does not know devices of the target's kind.
  [[nodiscard]] Result<CostModelPtr> get(const std::string& name, const target::Target& target);

 private:
  const bool uses_db_;
  const std::string db_;
  std::mutex mutex_;
  std::map<std::string, CostModelPtr> models_;
};

// The tasks of a model and what they need.
struct ModelWithTasks {
  CompileOptions options;
  std::unique_ptr<Session> session;
  ModelTasks tasks;
  // The runner is made for the first point that is measured, the tuner for the first of its task.
  std::mutex measuring;
  std::unique_ptr<measure::Runner> runner;
  search::TaskContext context;
  std::unique_ptr<search::TaskTuner> tuner;
  size_t tuned_group = 0;
  // If shapes vary: its kernels with what smaller runs need of them. It is made for the first task
  // that is tuned, with the schedules of a rule of thumb.
  std::optional<LimitedModel> limited;
};

// Makes the runner of the model unless there is one.
[[nodiscard]] Status make_runner(ModelWithTasks& model);

// A search that a strategy of the caller takes part in. Its cost model may be asked only while the
// strategy is called: at other times it learns, or is gone.
class LiveSearch {
 public:
  // Lets others ask for as long as it lives. Its end waits for them.
  class Window {
   public:
    Window(LiveSearch& live, const search::SearchTask& task) : live_(live) { live_.set(&task); }
    ~Window() { live_.set(nullptr); }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

   private:
    LiveSearch& live_;
  };
  // Calls work with the task, or with null if this is not the time.
  auto use(const auto& work) {
    const std::shared_lock lock(mutex_);
    return work(task_);
  }

 private:
  void set(const search::SearchTask* task) {
    const std::unique_lock lock(mutex_);
    task_ = task;
  }
  std::shared_mutex mutex_;
  const search::SearchTask* task_ = nullptr;
};

struct ModelTask::State {
  TaskInfo info;
  space::Space space;
  std::vector<SketchInfo> sketches;
  std::shared_ptr<const compute::Dag> dag;
  std::shared_ptr<const target::Target> target;
  std::shared_ptr<NamedModels> models;
  std::shared_ptr<ModelWithTasks> opened = {};  // null for a task of a search
  size_t group = 0;                             // in `opened`
  std::shared_ptr<LiveSearch> live = {};        // null for a task of an opened model
};

// Returns the tasks of a graph that is imported already, as model_tasks() does of a file.
[[nodiscard]] Result<std::vector<ModelTask>> model_tasks(graph::Graph graph,
                                                         const CompileOptions& options);

// Returns the facts about a task that its computation and its space tell.
[[nodiscard]] TaskInfo describe_task(const compute::Dag& dag, const space::Space& space,
                                     const target::Target& target);

}  // namespace hone
