// dataset.h - data sets for cost models: databases with measured samples of the schedules of many
// models' tasks. Where a data set is expected, its text is that of a database (hone/database.h).
// Schedules of another version than this library's are left out; a warning says so, and why others
// are. docs/user/dataset.md says how samples are chosen and timed.
//
//   hone::DatasetOptions options{.schedules = 64, .db = "data.db"};
//   const auto tasks = hone::collect_tasks({"resnet18.onnx", "bert.onnx"}, options);
//   if (tasks.ok()) std::cout << hone::make_dataset(*tasks, options).ok() << '\n';
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hone/database.h"
#include "hone/export.h"
#include "hone/options.h"
#include "hone/status.h"
#include "hone/tensor.h"

namespace hone {

namespace compute {
struct Dag;  // what a task computes, for Hone itself
}

struct DatasetProgress {
  int64_t records = 0;  // number of measurements of this call
  int64_t stored = 0;   // number of schedules that count, also those from before
  int64_t wanted = 0;   // number of schedules that is wanted
  int64_t failed = 0;   // number of measurements of this call without a time
  int open = 0;         // combinations of task, device and threads that want more
  double elapsed = 0, rate = 0, left = 0;  // seconds; measurements a second; seconds
  std::string task, device;                // those of the last batch
  int threads = 0;
};

struct DatasetOptions {
  // Sizes of the variants, besides each model's own: of the first extent of all inputs.
  std::vector<int64_t> batches;
  // Likewise of the sides of images (inputs of 4 dimensions with 3 channels).
  std::vector<int64_t> sides;
  // Likewise of the lengths of token sequences (integer inputs of 2 dimensions).
  std::vector<int64_t> sequences;
  // Follow symbolic links from a model's external data to files outside its folder.
  bool linked_data = false;
  int max_tasks = 0;        // limit of the number of tasks; 0: none
  std::set<uint64_t> only;  // keys of tasks, such as TaskList::keys(); if it is empty, all tasks
  // "host", and names of device_names() that are its parts; or a GPU that is here, alone.
  std::vector<std::string> devices = {"host"};
  std::string machine;       // as TargetOptions::machine
  std::vector<int> threads;  // if it is empty, 1 and all cores; 1 for a GPU
  int schedules = 128;       // number for each task, device and number of threads
  int round = 32;            // number of these that are measured before the next task has its turn
  double task_seconds = 20;  // limit for each task, device and number of threads
  double budget_seconds = 3600;     // limit for all measurements
  std::string db;                   // it is made if it does not exist; what it has counts
  uint64_t seed = 1;                // of all random choices
  double tolerance = 1e-4;          // relative to the largest output; 0: outputs are not checked
  const JobHooks* hooks = nullptr;  // as AdvancedOptions::hooks
  // If it becomes true, the call ends early. It may be null.
  const std::atomic<bool>* interrupted = nullptr;
  // Called by the thread that called make_dataset(), after each batch.
  std::function<void(const DatasetProgress&)> on_progress;
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
  uint64_t key = 0;
  std::string name;          // name of its first node
  std::string kernel_class;  // such as "conv2d+bias+relu"
  double flops = 0, bytes = 0;
  // Pairs of an index into DatasetTasks::variants and how often the task occurs there; 0 if another
  // division of the model into tasks would have it.
  std::vector<std::pair<size_t, int>> uses;
  // It is timed with weights that no core has in its own caches.
  bool cold_weights = false;
  std::shared_ptr<const compute::Dag> dag;
};

// The smallest number of schedules of a task in a data set. From tasks with fewer, such as sorts or
// copies of a few numbers, there is nothing to learn.
inline constexpr int kLeastSchedules = 64;

struct DatasetTasks {
  std::vector<ModelVariant> variants;
  int64_t small = 0;               // distinct tasks of fewer than kLeastSchedules, left out
  std::vector<DatasetTask> tasks;  // ordered by key
};

struct DatasetSummary {
  DatasetProgress progress;  // at the end
  bool interrupted = false, complete = false;
  double compile_seconds = 0, measure_seconds = 0, prepare_seconds = 0;
};

// Imports every variant of the models at these paths. One that cannot be imported has a status that
// says why, and is left out. It is an error if there is no task at all, or a file that is none.
[[nodiscard]] HONE_API Result<DatasetTasks> collect_tasks(
    const std::vector<std::string>& models, const DatasetOptions& options,
    const std::function<void(const ModelVariant&)>& on_variant = {});
// Measures until all samples exist, the time is up, or it is interrupted. All measurements are in
// the database then, and the same call continues. Errors are those of devices and databases.
[[nodiscard]] HONE_API Result<DatasetSummary> make_dataset(const DatasetTasks& tasks,
                                                           const DatasetOptions& options);
// Returns how this machine tells whether memory or arithmetic limits a schedule: "hardware
// counters, ..." or "static analysis (...)" with the reason.
[[nodiscard]] HONE_API std::string bounds_source();

// A few tasks that represent others, to be measured first on a new device.
struct ListedTask {
  uint64_t key = 0;
  std::string kernel_class;
  int cluster = 1;        // number of tasks that it represents, itself included
  double similarity = 1;  // mean rank correlation of their features with its own
};

struct TaskList {
  std::string device;  // device whose records the tasks came from: KEY or KEY/THREADS
  std::vector<std::string> excluded_models;  // networks whose tasks were left out
  std::vector<ListedTask> tasks;             // those with the largest clusters first
  [[nodiscard]] std::set<uint64_t> keys() const {
    std::set<uint64_t> all;
    for (const ListedTask& task : tasks) all.insert(task.key);
    return all;
  }
};

// Options of choose_representatives(). The device is a name of device_names() or a key as
// DatasetStatistics has it, and then "/THREADS" or nothing: "host", "host/2".
struct RepresentativeOptions {
  std::string device = "host";
  int count = 10;                           // number of tasks
  std::vector<std::string> exclude_models;  // networks whose tasks are left out
};
[[nodiscard]] HONE_API Result<TaskList> choose_representatives(
    const std::string& db, const RepresentativeOptions& options = {});
// A list of tasks as a file. An error of reading names the file and what is wrong in it.
[[nodiscard]] HONE_API Status write_task_list(const std::string& path, const TaskList& list);
[[nodiscard]] HONE_API Result<TaskList> read_task_list(const std::string& path);

// The unit by which a data set is divided.
enum class SplitBy : uint8_t {
  kWithin,  // schedules of each task; near duplicates stay together
  kTask,    // whole tasks
  kModel,   // all tasks of a held-out network, also where other networks have them
  kDevice,  // everything that was measured on a held-out device, or with a number of threads there
};
// Finds one by its name: "within", "task", "model" or "device".
[[nodiscard]] HONE_API Result<SplitBy> parse_split_by(std::string_view name);

struct SplitOptions {
  SplitBy by = SplitBy::kTask;
  std::vector<std::string> held_out;  // networks, or devices as KEY or KEY/THREADS
  double fraction = 0.1;              // share of tasks or schedules for testing
  double validation = 0.1;            // share of the others for validation
  uint64_t seed = 1;
};

struct SplitSizes {
  int64_t train = 0, validation = 0, test = 0;  // numbers of schedules
};

// Divides a data set into parts for training, for choosing among models and for judging, and writes
// the file that says which schedule is where, so that all models are compared on the same data. It
// is an error if nothing would be left for training or for testing.
[[nodiscard]] HONE_API Result<SplitSizes> split_dataset(const std::string& db,
                                                        const std::string& path,
                                                        const SplitOptions& options = {});

struct ExportedDataset {
  int64_t records = 0;
  int64_t schedules = 0, tasks = 0;  // numbers of those with features; 0 for JSON lines
};
// Writes all measurements to a file: as arrays with features and times for NumPy if its name ends
// in ".npz", else as JSON lines, to standard output for "-".
[[nodiscard]] HONE_API Result<ExportedDataset> export_dataset(const std::string& db,
                                                              const std::string& path);
// Adds the measurements of such a file to a data set, which is made if it does not exist, each
// once. If anything in the file is wrong, nothing is added, and the error names it.
[[nodiscard]] HONE_API Result<CopiedTrials> import_dataset(const std::string& path,
                                                           const std::string& db);

// If times differ by less than this factor, the next measurement may change their order. Training
// on pairs of schedules leaves such pairs out.
inline constexpr double kReliableRatio = 1.04;
inline constexpr int kManySchedules = 500;  // number that a task to judge a model by should have

// The content of a data set, and how far its times can be trusted.
struct DatasetStatistics {
  struct Counts {
    int64_t records = 0, tasks = 0;
  };
  Counts all;
  std::map<std::string, Counts> devices;    // by "KEY/THREADS"
  std::map<std::string, Counts> kernels;    // by class
  std::map<std::string, Counts> models;     // by network; "-" for records without one
  std::map<std::string, int64_t> outcomes;  // numbers of records, by TrialInfo::outcome
  std::map<int, int64_t> samples;           // numbers of records, by their number of samples
  int64_t disturbed = 0;  // records while other programs used a quarter of the machine
  // The median of half a time's interval / the time.
  double interval_half_width = 0;

  // Combinations of task, device and number of threads that have two schedules or more, and those
  // of them that have kManySchedules.
  int64_t combinations = 0, with_many = 0;
  int64_t schedules = 0;  // number of schedules in them
  // Numbers of what is left out: schedules that cannot be compiled any more, records that others of
  // the same schedule disagree with, records without a positive time, combinations with one
  // schedule.
  int64_t left_out = 0, outliers = 0, bad_times = 0, single_schedules = 0;
  // Medians over the combinations.
  double median_over_best = 0, worst_over_best = 0;
  double reliable_pairs =
      0;  // share of pairs that differ by kReliableRatio, mean over combinations
  // Shares of the time that memory and arithmetic take, and where they are from: "counters",
  // "static" or "mixed".
  double memory_bound = 0, core_bound = 0;
  std::string bounds_source;
};
[[nodiscard]] HONE_API Result<DatasetStatistics> dataset_statistics(const std::string& db);

}  // namespace hone
