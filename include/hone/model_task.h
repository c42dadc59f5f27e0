// model_task.h - the tasks of a model and the spaces of their schedules, for who studies them, or
// writes search strategies and cost models of the own (hone/own_search.h).
//
//   const auto tasks = hone::model_tasks("resnet18.onnx");
//   const hone::ModelTask& task = tasks->front();
//   const hone::PointRows points = task.sample(64, 1);
//   const auto seconds = task.predict(points);
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/options.h"
#include "hone/point_rows.h"
#include "hone/status.h"
#include "hone/tune.h"

namespace hone {

// A choice that a schedule makes. Options that stand next to each other are similar.
struct DecisionInfo {
  std::string name;  // a stage and the role of the decision, as "conv2d.ow.tile"
  std::string kind;  // "tile", "order", "unroll", "vector", "parallel", "tail", "packing"
  std::vector<int64_t> options;  // ascending where they are sizes
};

// A structure of schedules with the decisions that it leaves open.
struct SketchInfo {
  std::string algorithm;  // such as "direct" or "winograd_4"
  // It only divides work among threads, so it is not used with one thread.
  bool for_threads = false;
  std::vector<DecisionInfo> decisions;
};

struct TaskInfo {
  uint64_t key = 0;          // equal for equal tasks, in whatever models
  std::string name;          // name of its first node; empty for a task of tune()
  std::string kernel_class;  // such as "conv2d+bias+relu"
  std::string text;          // its class, and its operands with their shapes
  double multiplicity = 1;   // how often it occurs in the model; 1 for a task of tune()
  double flops = 0;          // FLOPs of one occurrence, as its operators are written
  double least_flops = 0;    // FLOPs of the algorithm that needs the fewest
  double bytes = 0;          // bytes that it reads and writes, each counted once
  std::string device;        // key of the device, as Device::key
  int threads = 1;           // threads that its kernels run on
  uint64_t seed = 1;         // AdvancedOptions::seed
};

// The measurement of a point.
struct PointTime {
  double seconds = 0, low = 0, high = 0;  // robust centre and its interval; infinity if it failed
  std::string outcome;                    // "ok", or as FailureSummary::outcome
  std::string message;                    // why it failed
};

struct MeasurePointsOptions {
  int rounds = 1;  // how often each point is measured, in turns; the least time counts
  // If it becomes true, the call ends early with Code::kCancelled. It may be null.
  const std::atomic<bool>* interrupted = nullptr;
};

struct TuneTaskOptions {
  // As for tune(), but without a mode and a file of what the strategy learned, as one task alone is
  // tuned. The budget is all for the search.
  SearchOptions search;
  // If it becomes true, the search ends early, with what it has found. It may be null.
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const TuneProgress&)> on_progress;  // as TuneOptions::on_progress
};

// What became of a task that was tuned alone.
struct TaskTuning {
  int trials = 0;
  double seconds = 0;          // of a run with the fastest schedule; 0: none could be measured
  double untuned_seconds = 0;  // of the one that was the fastest known or predicted before
  double bound_seconds = 0;    // what no schedule is expected to beat; 0: unknown
  double search_seconds = 0;   // seconds that the search took
  bool finished = false;       // nothing is left to try or to gain, whatever budget there is
  bool interrupted = false;
  std::vector<FailureSummary> failures;
  // The first failure of the database, which ended the search. What was measured after it is lost.
  Status store_status;
};

// A task and the space of its schedules. Copies are the same task, and may be used by several
// threads at the same time. Points that a function takes must be rows of this space: others are
// Code::kInvalid, and the message says what is wrong with which row.
class HONE_API ModelTask {
 public:
  struct State;  // for Hone itself
  explicit ModelTask(std::shared_ptr<State> state) : state_(std::move(state)) {}
  [[nodiscard]] bool operator==(const ModelTask&) const = default;  // whether they are copies

  [[nodiscard]] const TaskInfo& info() const;
  [[nodiscard]] const std::vector<SketchInfo>& sketches() const;
  [[nodiscard]] double space_size() const;  // number of points, legal or not
  [[nodiscard]] size_t width() const;       // PointRows::width

  // Returns the point of each sketch that a rule of thumb chooses.
  [[nodiscard]] PointRows default_points() const;
  // Draws random legal points; all sketches are equally likely. A point may come more than once.
  // The same seed gives the same points.
  [[nodiscard]] PointRows sample(int count, uint64_t seed) const;
  // Returns for each point one that differs in one to three decisions, at random.
  [[nodiscard]] Result<PointRows> mutate(const PointRows& points, uint64_t seed) const;
  // Returns for each pair of points one that takes each decision from one of the two, at random; a
  // copy of the first where their sketches differ.
  [[nodiscard]] Result<PointRows> crossover(const PointRows& first, const PointRows& second,
                                            uint64_t seed) const;
  // Returns all legal points that differ from a point by one option of one decision.
  [[nodiscard]] Result<PointRows> neighbours(std::span<const int32_t> point) const;
  // Returns 1 for each point that is legal, else 0.
  [[nodiscard]] Result<std::vector<uint8_t>> legal(const PointRows& points) const;

  // Returns the schedule of a point, one step a line.
  [[nodiscard]] Result<std::string> steps(std::span<const int32_t> point) const;
  // Returns the loop program of a point, after all passes, as text (docs/formats/ir.md).
  [[nodiscard]] Result<std::string> program(std::span<const int32_t> point) const;
  // Returns the point with these steps, or the legal one whose steps are most similar.
  [[nodiscard]] Result<PointRows> locate(const std::string& steps) const;

  // Returns the features of points; a set of feature_sets(), or the best one of the device for "".
  [[nodiscard]] Result<FeatureRows> features(const PointRows& points,
                                             const std::string& set = "") const;
  // Returns the seconds that a cost model predicts, a name or file as for AdvancedOptions::cost;
  // infinity for illegal points and for those that need several threads if there is one. The model
  // "" is that of the options or, for a task of tune(), the one that guides the search and learns
  // from it; that one may be asked only while tune() calls OwnStrategy.
  [[nodiscard]] Result<std::vector<double>> predict(const PointRows& points,
                                                    const std::string& cost = "") const;
  // Runs points in a worker process and compares their outputs with the reference. It is an error
  // for a task of tune(), which measures what its strategy proposes.
  [[nodiscard]] Result<std::vector<PointTime>> measure(
      const PointRows& points, const MeasurePointsOptions& options = {}) const;
  // Searches for faster schedules of this task alone, for the budget, less if nothing is left to
  // try. It begins with what the database of the task's options has, which is made if it does not
  // exist, and stores what it measures there; compile() and tune() of any model with this task use
  // it. No library is written. It is an error for a task of tune().
  [[nodiscard]] Result<TaskTuning> tune(const TuneTaskOptions& options = {}) const;

 private:
  std::shared_ptr<State> state_;
};

// Imports a model and returns its distinct tasks, in the order of their first nodes. A task without
// a space of schedules is left out. No database is opened.
[[nodiscard]] HONE_API Result<std::vector<ModelTask>> model_tasks(
    const std::string& model, const CompileOptions& options = {});

}  // namespace hone
