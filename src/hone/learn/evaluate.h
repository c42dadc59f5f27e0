// learn/evaluate.h - measures how good a cost model is on the measured schedules of a database, per
// kernel class. Models that learn are judged on tasks that they were not trained on.
#pragma once

#include <functional>
#include <map>

#include "hone/cost/cost_model.h"
#include "hone/evaluate.h"
#include "hone/learn/folds.h"
#include "hone/learn/metrics.h"

namespace hone::learn {

inline constexpr int kDraws = 16;  // choices of schedules for a ScheduleCountScore

// The number of times that each task, by its key, occurs in a network, by its name. If a network is
// missing here, every task that was measured for it counts once.
using Networks = std::map<std::string, std::map<uint64_t, int>>;

struct Judging {
  Networks networks = {};
  // Numbers of schedules for which to judge in addition, on the tasks that have as many as the
  // largest of them.
  std::vector<int> schedules = {};
  // Called for each task that is judged.
  std::function<void(const TaskPrediction&)> on_task = {};
};

// Judges a model. Tasks that it refuses (Code::kUnsupported) are left out, with a warning that says
// how many and why. It is an error if no task can be judged.
[[nodiscard]] Result<Evaluation> evaluate(const Dataset& dataset, const target::Target& target,
                                          const cost::CostModel& model,
                                          const Judging& judging = {});

// Judges models that are trained anew on each fold's training part, by its test part.
using Trainer = std::function<Result<std::unique_ptr<cost::CostModel>>(const Dataset&)>;
[[nodiscard]] Result<Evaluation> cross_evaluate(const Dataset& dataset,
                                                const target::Target& target, Split split,
                                                const Trainer& train, const Judging& judging = {});

}  // namespace hone::learn
