// dataset_make.h - makes a data set for cost models: the distinct tasks of many models in many
// sizes, and measured samples of their schedules (docs/user/dataset.md).
#pragma once

#include <set>

#include "hone/compute/dag.h"
#include "hone/machine/machine.h"
#include "hone/measure/worker_process.h"
#include "hone/search/sample_tasks.h"
#include "hone/tensor/tensor.h"

namespace hone {

struct DatasetOptions {
  // The sizes of the variants, besides each model's own: the first extent of all inputs; the sides
  // of images (inputs of 4 dimensions with 3 channels); the lengths of token sequences (integer
  // inputs of 2 dimensions).
  std::vector<int64_t> batches, sides, sequences;
  int max_tasks = 0;        // limit of the number of tasks; 0: none
  std::set<uint64_t> only;  // keys of tasks; if it is empty, all tasks
  std::vector<std::string> devices = {"host"};
  std::vector<int> threads;  // if it is empty, 1 and all cores
  int schedules = 128;       // number for each task, device and number of threads
  int round = 32;            // number of these that are measured before the next task has its turn
  double task_seconds = 20;  // limit for each task, device and number of threads
  double budget_seconds = 3600;
  std::string db;
  bool linked_data = false;  // as in CompileOptions
  uint64_t seed = 1;
  double tolerance = 1e-4;  // relative to the largest output; 0: outputs are not checked
  measure::WorkerOptions worker;
  const machine::Machine* machine = nullptr;       // what measures; null: this machine
  const std::atomic<bool>* interrupted = nullptr;  // set by Ctrl-C
  std::function<void(const search::SampleProgress&)> on_progress;
};

// A model in one size.
struct ModelVariant {
  std::string model;  // name of the model
  std::map<std::string, Shape> shapes;
  std::string text;  // such as "4x3x240x240"
  Status status;     // why it could not be imported, or ok
  int tasks = 0;     // number of distinct tasks
  int added = 0;     // number of these that no earlier variant has
};

struct DatasetTask {
  compute::Dag dag;
  uint64_t key = 0;
  std::string name, kernel_class;
  measure::Weights weights = measure::Weights::kWarm;
  // Pairs of a variant and how often the task occurs in it; 0 if it is only an Alternative there
  // (session/choose_tasks.h).
  std::vector<std::pair<size_t, int>> uses;
};

// The smallest number of schedules of a task in a data set. From tasks with fewer, such as sorts or
// copies of a few numbers, there is nothing to learn.
inline constexpr double kLeastPoints = 64;

struct DatasetTasks {
  std::vector<ModelVariant> variants;
  // The number of distinct tasks that are left out because they have fewer than kLeastPoints
  // schedules.
  int64_t small = 0;
  std::vector<DatasetTask> tasks;  // sorted by key
};

// Imports every variant of every model. One that cannot be imported has a status that says why, and
// is left out. It is an error if there is no task at all.
[[nodiscard]] Result<DatasetTasks> collect_tasks(
    const std::vector<std::string>& models, const DatasetOptions& options,
    const std::function<void(const ModelVariant&)>& on_variant = {});
// Measures until all samples exist, the time is up, or the user interrupts. All measurements are in
// the database then.
[[nodiscard]] Result<search::SampleResult> make_dataset(const DatasetTasks& tasks,
                                                        const DatasetOptions& options);

}  // namespace hone
