// adapt.h - fits what guides the search to a new device by few measurements (Fasor, section 4.2):
// the schedules of a few tasks that represent all are measured, and a trained cost model is
// corrected by them. docs/user/training_cost_models.md says what it is worth.
//
//   hone::adapt({"resnet18.onnx", "bert.onnx"}, "mine.model", {.tasks = 10});
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hone/dataset.h"
#include "hone/export.h"
#include "hone/status.h"

namespace hone {

// Returns the options of measuring that adapt() has by default.
[[nodiscard]] inline DatasetOptions few_measurements() {
  DatasetOptions options;
  options.schedules = 64;
  options.budget_seconds = 300;
  return options;
}

struct AdaptOptions {
  // How tasks are collected and measured: DatasetOptions::devices names one device, threads one
  // number of threads or none (all cores), schedules the number for each of the chosen tasks.
  // If `db` is empty, measurements are forgotten in the end. If `only` is not empty, its tasks are
  // the chosen ones.
  DatasetOptions measure = few_measurements();
  int tasks = 10;  // number of tasks that are chosen
  // The trained file that is corrected, FILE.model or FILE.onnx. Empty: the trees that are used on
  // the device by default.
  std::string from;
  std::string booster;  // as TrainOptions::booster
  // Called once what is to be measured is known.
  std::function<void(const std::vector<ListedTask>&)> on_tasks;
};

// How well a model orders the schedules of one task, or means over tasks, as in Score (evaluate.h).
struct AdaptScore {
  double pair_accuracy = 0, top1 = 0, top5 = 0;
};

// A chosen task. The scores are of models that have seen none of its schedules.
struct AdaptedTask {
  ListedTask task;
  int64_t schedules = 0;  // number that were measured
  bool judged = false;    // there were kMinTrialsToJudge (evaluate.h) or more of them
  AdaptScore before, after;
};

struct AdaptSummary {
  std::string device, from;        // of the records: KEY/THREADS; the name of what was corrected
  std::vector<AdaptedTask> tasks;  // those with the largest clusters first
  int64_t all_tasks = 0;           // number of tasks that they represent
  // Means over the judged tasks: the model as it was, and corrected by all other chosen tasks.
  AdaptScore before, after;
  DatasetSummary measured;
  double fit_seconds = 0;  // seconds for fitting and judging
  // Returns whether the corrected models order the schedules better.
  [[nodiscard]] bool gained() const { return after.pair_accuracy > before.pair_accuracy; }
};

// Chooses tasks of the models at these paths, measures them, and writes the corrected model to the
// file `output`: FILE.model for trees, FILE.onnx for a net. It is an error if there are fewer than
// two tasks to choose, if too little could be measured to judge two, or if it is interrupted;
// nothing is written then, and what was measured is in the database, if one is named.
[[nodiscard]] HONE_API Result<AdaptSummary> adapt(
    const std::vector<std::string>& models, const std::string& output, const AdaptOptions& options,
    const std::function<void(const ModelVariant&)>& on_variant = {});

}  // namespace hone
