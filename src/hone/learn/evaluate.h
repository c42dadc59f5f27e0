// learn/evaluate.h - measures how good a cost model is on the measured schedules of a database, per
// kernel class. Models that learn are judged on tasks that they were not trained on.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "hone/cost/cost_model.h"
#include "hone/learn/folds.h"
#include "hone/learn/metrics.h"

namespace hone::learn {

struct Score {
  std::string kernel_class;
  int tasks = 0;
  int64_t trials = 0;
  // These are means over tasks.
  double pair_accuracy = 0;
  double clear_pair_accuracy = 0;  // over pairs that differ by more than kClearRatio
  double top1 = 0, top5 = 0;
  double peak5 = 0;      // mean of top1 to top5
  double r_squared = 0;  // for best time / time
  double rmse = 0;       // for best time / time, over all trials
  // The determination of the seconds, and of their logarithm, over all trials of all tasks: whether
  // the model knows how long a schedule takes, not only which one is faster (Fasor, table 8).
  Determination seconds, log_seconds;
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
// easier to find. They are means over kDraws choices of the schedules; those of a smaller number
// are among those of a larger one.
struct ScheduleCountScore {
  int schedules = 0;
  Score score;
  // Means over networks and threads; 0 if there are none.
  double network_top1 = 0, network_top5 = 0;
};
inline constexpr int kDraws = 16;

struct Evaluation {
  std::vector<Score> classes;          // ordered by name
  Score all;                           // with kernel_class "all"
  int not_judged = 0;                  // tasks with fewer than kMinTrialsToJudge schedules
  std::vector<NetworkScore> networks;  // ordered by name and threads
  std::vector<ScheduleCountScore> by_schedules;  // ordered by number
};

// The number of times that each task, by its key, occurs in a network, by its name. If a network is
// missing here, every task that was measured for it counts once.
using Networks = std::map<std::string, std::map<uint64_t, int>>;

// With fewer schedules, a task says little about an order.
inline constexpr int kMinTrialsToJudge = 8;

struct Judging {
  Networks networks = {};
  // Numbers of schedules for which to judge in addition, on the tasks that have as many as the
  // largest of them.
  std::vector<int> schedules = {};
  // Called for each task that is judged, with the predicted times of its schedules in seconds, in
  // their order.
  std::function<void(const TaskTrials&, std::span<const double>)> predicted = {};
};

// Judges a model. It is an error if no task can be judged.
[[nodiscard]] Result<Evaluation> evaluate(const Dataset& dataset, const target::Target& target,
                                          const cost::CostModel& model,
                                          const Judging& judging = {});

// Judges models that are trained anew on each fold's training part, by its test part.
using Trainer = std::function<Result<std::unique_ptr<cost::CostModel>>(const Dataset&)>;
[[nodiscard]] Result<Evaluation> cross_evaluate(const Dataset& dataset,
                                                const target::Target& target, Split split,
                                                const Trainer& train, const Judging& judging = {});

}  // namespace hone::learn
