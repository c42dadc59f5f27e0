// cost/replay.h - the baseline without a model: schedules are ranked by the times that they took on
// another device. On a sibling of it that is hard to beat.
#pragma once

#include "hone/cost/cost_model.h"
#include "hone/cost/dataset.h"

namespace hone::cost {

struct Replay {
  std::unique_ptr<CostModel> model;  // predicts what was measured there, of these schedules alone
  Dataset dataset;                   // the schedules that ran on both
  // Those to judge by, of all that there are (evaluate.h).
  int64_t tasks = 0, all_tasks = 0;
  int64_t schedules = 0, all_schedules = 0;
};
// `dataset` is to be judged by the times of `other`: those with the same number of threads, or if
// `any_threads` of all, of which `other` must have one.
[[nodiscard]] Replay make_replay(const Dataset& dataset, const Dataset& other, bool any_threads);

}  // namespace hone::cost
