// cost/evaluate.h - how good a cost model is on the measured schedules of a database, per kernel
// class; models that learn are judged on tasks that they were not trained on.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "hone/cost/cost_model.h"
#include "hone/cost/folds.h"
#include "hone/cost/metrics.h"

namespace hone::cost {

struct Score {
  std::string kernel_class;
  int tasks = 0;
  int64_t trials = 0;
  // Means over tasks.
  double pair_accuracy = 0;
  double clear_pair_accuracy = 0;  // of pairs that differ by more than kClearRatio
  double top1 = 0, top5 = 0;
  double peak5 = 0;      // the mean of top1 to top5
  double r_squared = 0;  // of best time / time
  double rmse = 0;       // of it, over all trials
  // Of the seconds, and of their logarithm, of all trials of all tasks together: whether the model
  // knows how long a schedule takes, not only which is faster (Fasor, table 8).
  Determination seconds, log_seconds;
};

// A network, run by so many threads, whose every task runs by the best of the k schedules that are
// predicted to be fastest.
struct NetworkScore {
  std::string network;
  int threads = 1;
  int tasks = 0;   // of the network that were judged
  int listed = 0;  // distinct tasks that it has; 0: nobody said
  // Sums over its tasks, each as often as it occurs.
  double best_seconds = 0, top1_seconds = 0, top5_seconds = 0;
  [[nodiscard]] double top1() const { return best_seconds / top1_seconds; }
  [[nodiscard]] double top5() const { return best_seconds / top5_seconds; }
};

// What the same tasks give when only so many schedules of each are known: of few the best is easier
// to find. Means over kDraws choices of the schedules; those of a smaller number are among those of
// a larger one.
struct ScheduleCountScore {
  int schedules = 0;
  Score score;
  double network_top1 = 0, network_top5 = 0;  // means over networks and threads, 0 without any
};
inline constexpr int kDraws = 16;

struct Evaluation {
  std::vector<Score> classes;                    // by name
  Score all;                                     // kernel_class is "all"
  int not_judged = 0;                            // tasks of fewer than kMinTrialsToJudge schedules
  std::vector<NetworkScore> networks;            // by name and threads
  std::vector<ScheduleCountScore> by_schedules;  // by number
};

// How often each task, by its key, occurs in a network, by its name. Of a network that is not there
// every task that was measured for it counts once.
using Networks = std::map<std::string, std::map<uint64_t, int>>;

// Tasks with fewer schedules say little about an order.
inline constexpr int kMinTrialsToJudge = 8;

struct Judging {
  Networks networks = {};
  // Numbers of schedules to judge by, too, of the tasks that have as many as the largest of them.
  std::vector<int> schedules = {};
  // Told of each task that is judged what its schedules, in their order, are predicted to take
  // (seconds).
  std::function<void(const TaskTrials&, std::span<const double>)> predicted = {};
};

// An error if no task can be judged.
[[nodiscard]] Result<Evaluation> evaluate(const Dataset& dataset, const target::Target& target,
                                          const CostModel& model, const Judging& judging = {});

// The same of what is trained anew on each fold's training part, judged by its test part.
using Trainer = std::function<Result<std::unique_ptr<CostModel>>(const Dataset&)>;
[[nodiscard]] Result<Evaluation> cross_evaluate(const Dataset& dataset,
                                                const target::Target& target, Split split,
                                                const Trainer& train, const Judging& judging = {});

}  // namespace hone::cost
