// dataset_make.h - a data set for cost models: the distinct tasks of many models in many sizes, and
// measured samples of their schedules (docs/user/dataset.md).
#pragma once

#include <set>

#include "hone/compute/dag.h"
#include "hone/measure/worker_process.h"
#include "hone/search/sample_tasks.h"
#include "hone/tensor/tensor.h"

namespace hone {

struct DatasetOptions {
  // Sizes of the variants, beside each model's own: of the first extent of all inputs; of the sides
  // of images (inputs of 4 dimensions with 3 channels); of token sequences (integer inputs of 2).
  std::vector<int64_t> batches, sides, sequences;
  int max_tasks = 0;        // 0: all
  std::set<uint64_t> only;  // keys of tasks; none: all
  std::vector<std::string> devices = {"host"};
  std::vector<int> threads;  // empty: 1 and all cores
  int schedules = 128;       // of each task, device and number of threads
  int round = 32;
  double task_seconds = 20;
  double budget_seconds = 3600;
  std::string db;
  bool linked_data = false;  // CompileOptions
  uint64_t seed = 1;
  double tolerance = 1e-4;  // of the largest output; 0: none is checked
  measure::WorkerOptions worker;
  measure::Runner* runner = nullptr;               // null: workers on this machine
  const std::atomic<bool>* interrupted = nullptr;  // Ctrl-C
  std::function<void(const search::SampleProgress&)> on_progress;
};

// A size of a model.
struct ModelVariant {
  std::string model;  // its name
  std::map<std::string, Shape> shapes;
  std::string text;  // "4x3x240x240"
  Status status;     // why it could not be imported, or ok
  int tasks = 0;     // distinct ones
  int added = 0;     // that no variant before has
};

struct DatasetTask {
  compute::Dag dag;
  uint64_t key = 0;
  std::string name, kernel_class;
  measure::Weights weights = measure::Weights::kWarm;
  // (variant, how often it occurs there); 0: only as the alternative to two others.
  std::vector<std::pair<size_t, int>> uses;
};

// Tasks with fewer ways to run them have nothing to learn from: sorts, copies of a few numbers.
inline constexpr double kLeastPoints = 64;

struct DatasetTasks {
  std::vector<ModelVariant> variants;
  int64_t small = 0;               // distinct tasks left out, of fewer than kLeastPoints schedules
  std::vector<DatasetTask> tasks;  // by key
};

// Imports every variant of every model; one that cannot be says why and is left out. An error if
// there is no task at all.
[[nodiscard]] Result<DatasetTasks> collect_tasks(
    const std::vector<std::string>& models, const DatasetOptions& options,
    const std::function<void(const ModelVariant&)>& on_variant = {});
// Measures until all is there, the time is up, or the user interrupts; then everything measured is
// in the database.
[[nodiscard]] Result<search::SampleResult> make_dataset(const DatasetTasks& tasks,
                                                        const DatasetOptions& options);

}  // namespace hone
