// learn/adapted_scores.h - how wrong a cost model is after it has learnt from a few schedules of a
// task, as while tuning (MetaTune, table 4 and figure 9).
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "hone/cost/cost_model.h"
#include "hone/evaluate.h"
#include "hone/learn/dataset.h"

namespace hone::learn {

// Makes a model that has learnt of no task that is judged.
using ModelMaker = std::function<Result<std::unique_ptr<cost::CostModel>>()>;

// Tells a fresh model schedules of each task, up to each number of `samples`, which ascend, and
// judges it after each by the schedules that it is never told. Which these are depends on the task
// and its schedules alone. Tasks that do not have kMinTrialsToJudge more than the most samples are
// left out, and so are those that the model cannot judge (AdaptedScore::refused). It is an error if
// no task is left or the model does not learn.
[[nodiscard]] Result<std::vector<AdaptedScore>> adapted_scores(const Dataset& dataset,
                                                               const target::Target& target,
                                                               std::span<const int> samples,
                                                               const ModelMaker& make);

}  // namespace hone::learn
