// cost/replay.h - the baseline without a model: schedules are ranked by the times that they took on
// another device. On a sibling of it that is hard to beat.
#pragma once

#include <optional>

#include "hone/cost/cost_model.h"
#include "hone/cost/dataset.h"

namespace hone::cost {

// A model of both devices: what it predicts here, corrected by what it got wrong there.
struct Translation {
  const CostModel* model;
  const target::Target* other;
  int threads;  // there; 0: as many as here
};

struct Replay {
  std::unique_ptr<CostModel>
      model;        // predicts by what was measured there, of these schedules alone
  Dataset dataset;  // the schedules that ran on both
  // Those to judge by, of all that there are (evaluate.h).
  int64_t tasks = 0, all_tasks = 0;
  int64_t schedules = 0, all_schedules = 0;
};
// `dataset` is to be judged by the times of `other`: those with the same number of threads, or if
// `any_threads` of all, of which `other` must have one. `translation` must outlive the result.
[[nodiscard]] Replay make_replay(const Dataset& dataset, const Dataset& other, bool any_threads,
                                 std::optional<Translation> translation = {});

}  // namespace hone::cost
