// cost/evaluate.h - how good a cost model is on the measured schedules of a database, per kernel
// class; models that learn are judged on tasks that they were not trained on.
#pragma once

#include <functional>

#include "hone/cost/cost_model.h"
#include "hone/cost/dataset.h"

namespace hone::cost {

struct Score {
  std::string kernel_class;
  int tasks = 0;
  int64_t trials = 0;
  // Means over tasks.
  double pair_accuracy = 0;
  double top1 = 0, top5 = 0;
  double r_squared = 0;  // of best time / time
};

struct Evaluation {
  std::vector<Score> classes;  // by name
  Score all;                   // kernel_class is "all"
};

// Tasks with fewer schedules say little about an order.
inline constexpr int kMinTrialsToJudge = 8;

[[nodiscard]] Result<Evaluation> evaluate(const Dataset& dataset, const target::Target& target,
                                          const CostModel& model);

// What a model is trained on, and what it is judged by.
enum class Split : uint8_t {
  kNone,     // nothing: it is judged as it is
  kByModel,  // each network in turn is judged, after training without any of its tasks
  kByTask,   // a fifth of the tasks in turn, after training on the others
  kWithin,   // a fifth of each task's schedules in turn, after training on the others
};
[[nodiscard]] Result<Split> parse_split(std::string_view name);
[[nodiscard]] std::vector<std::string> split_names();

using Trainer = std::function<Result<std::unique_ptr<CostModel>>(const Dataset&)>;
[[nodiscard]] Result<Evaluation> cross_evaluate(const Dataset& dataset,
                                                const target::Target& target, Split split,
                                                const Trainer& train);

}  // namespace hone::cost
