// evaluate.h - judges cost models on the measured schedules of a data set, per kernel class.
// docs/user/cost_models.md explains the scores. Messages name options as the command line does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/status.h"

namespace hone {

struct Score {
  std::string kernel_class;
  int tasks = 0;
  int64_t trials = 0;
  // These are means over tasks.
  double pair_accuracy = 0;        // share of pairs of schedules that are ordered correctly
  double clear_pair_accuracy = 0;  // the same of pairs whose times differ by more than 5 %
  double top1 = 0, top5 = 0;       // best time / best among those predicted to be fastest
  double peak5 = 0;                // mean of top1 to top5
  // The sum of the times of the 10 and the 50 best schedules, over that of as many that are
  // predicted to be fastest (Tuna, section V.B), and the number of tasks with more schedules than
  // that, over which they are means. Both are 0 if there is no such task.
  double sum10 = 0, sum50 = 0;
  int sum10_tasks = 0, sum50_tasks = 0;
  double r_squared = 0;  // for best time / time
  double rmse = 0;       // for best time / time, over all trials
  // The determination of the seconds, and of their logarithm, over all trials of all tasks: whether
  // the model knows how long a schedule takes, not only which one is faster (Fasor, table 8).
  double r_squared_seconds = 0, r_squared_log_seconds = 0;
};

// A network that is run by a number of threads, where every task uses the best of the k schedules
// that are predicted to be fastest.
struct NetworkScore {
  std::string network;
  int threads = 1;
  int tasks = 0;   // number of its tasks that were judged
  int listed = 0;  // number of distinct tasks that it has; 0 if unknown
  // Sums over its tasks, each as often as it occurs.
  double best_seconds = 0, top1_seconds = 0, top5_seconds = 0;
  [[nodiscard]] double top1() const { return best_seconds / top1_seconds; }
  [[nodiscard]] double top5() const { return best_seconds / top5_seconds; }
};

// The scores of the same tasks if only this many schedules of each are known, as the best of few is
// easier to find. They are means over 16 choices of the schedules; those of a smaller number are
// among those of a larger one.
struct ScheduleCountScore {
  int schedules = 0;
  Score score;
  // Means over networks and threads; 0 if there are none.
  double network_top1 = 0, network_top5 = 0;
};

// The errors of a model that has learnt from so many schedules of each task, on schedules that it
// was not told (MetaTune, table 4 and figure 9). They are means over the tasks, of best time /
// time, where the best is that of the schedules that are judged, once measured and once predicted.
struct AdaptedScore {
  int samples = 0;
  int tasks = 0;
  int refused = 0;           // tasks that the model cannot judge, which are left out
  int64_t schedules = 0;     // that are judged
  double mse = 0;            // mean squared error
  double top_mse = 0;        // the same of the fastest quarter of each task: the paper's MSE(D)
  double pair_accuracy = 0;  // as in Score
};

// How well the shares of time that memory and arithmetic take are predicted (Fasor's memory-bound
// and core-bound scores), over all schedules that are judged.
struct BoundsScore {
  std::string predicted_by;                 // "model", or "static analysis" if it predicts none
  std::string judged_by;                    // "counters", "static" or "mixed": of the schedules
  int64_t schedules = 0;                    // number of those
  double memory_error = 0, core_error = 0;  // means of the absolute differences
  double memory_r_squared = 0, core_r_squared = 0;
};

// The tasks and schedules for which the times of another device could be compared.
struct ReplayCoverage {
  std::string device;                // KEY or KEY/THREADS
  int64_t tasks = 0, all_tasks = 0;  // numbers of tasks with enough schedules of both devices
  int64_t schedules = 0, all_schedules = 0;
};

struct Evaluation {
  std::vector<Score> classes;          // ordered by name
  Score all;                           // with kernel_class "all"
  int not_judged = 0;                  // tasks with fewer than kMinTrialsToJudge schedules
  int refused = 0;                     // tasks that the model cannot judge, which are left out
  std::vector<NetworkScore> networks;  // ordered by name and threads
  std::vector<ScheduleCountScore> by_schedules;  // ordered by number
  std::vector<AdaptedScore> adapted;             // ordered by number of samples
  // Set if the model predicts the scores or some were counted: the static analysis is not judged by
  // itself.
  std::optional<BoundsScore> bounds;
  std::map<std::string, std::string> card;  // how the model was trained, by name
  std::optional<ReplayCoverage> replay;     // with EvaluateOptions::replay
  std::set<std::string> files;              // files that EvaluateOptions::networks were read from
};

// With fewer schedules, a task says little about an order.
inline constexpr int kMinTrialsToJudge = 8;

// The predictions of a model for the schedules of a task with a number of threads.
struct TaskPrediction {
  uint64_t task = 0;  // its key
  std::string kernel_class;
  int threads = 1;
  std::set<std::string> models;             // networks that have the task
  std::vector<uint64_t> schedules;          // hashes of their steps
  std::vector<double> measured, predicted;  // seconds, in the order of `schedules`
};

struct EvaluateOptions {
  std::string db;
  std::string device = "host";  // as RepresentativeOptions::device
  // A name or file as for AdvancedOptions::cost. Empty: "analytic", or no model with `replay`.
  std::string cost;
  // How models that learn are trained anew. "none": they are judged as they are; "by-model": each
  // network in turn is held out; "by-task": a fifth of the tasks in turn; "within": a fifth of the
  // schedules of each task, with near duplicates together.
  std::string split = "none";
  // A file of split_dataset(), instead of `split`: the test part is judged, and "gbdt",
  // "combined" and "gpu" are trained anew on the training part.
  std::string split_file;
  std::set<uint64_t> except;  // keys of tasks that are not judged
  std::string booster;        // as TrainOptions::booster; an error if nothing is trained
  // A device: schedules are ranked by their times there, which are corrected by the predictions of
  // `cost` for both devices if that is set.
  std::string replay;
  std::string replay_db;  // where these times are; empty: in `db`
  // Paths of models whose tasks are judged together, each as often as it occurs. If it is empty,
  // they are the networks of the records, with each task once.
  std::vector<std::string> networks;
  bool linked_data = false;    // as ModelOptions::linked_data
  std::vector<int> schedules;  // for Evaluation::by_schedules
  // Numbers of schedules of each task that the model learns from, for Evaluation::adapted. It
  // learns as while tuning: trees by more trees, a net by `adapt`, as AdvancedOptions::adapt.
  std::vector<int> adapt_samples;
  std::string adapt = "none";
  // Called for each task that is judged.
  std::function<void(const TaskPrediction&)> on_task;
};

// Judges a model. It is an error if no task can be judged.
[[nodiscard]] HONE_API Result<Evaluation> evaluate(const EvaluateOptions& options);

}  // namespace hone
