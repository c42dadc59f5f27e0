// learn/replay.h - a baseline without a model, which ranks schedules by their times on another
// device. It is hard to beat if that is a sibling.
#pragma once

#include <optional>

#include "hone/cost/cost_model.h"
#include "hone/evaluate.h"
#include "hone/learn/dataset.h"

namespace hone::learn {

// A model of both devices: its prediction for this one, corrected by its error on the other one.
struct Translation {
  const cost::CostModel* model;
  const target::Target* other;
  int threads;  // number of threads there; 0: as many as here
};

struct Replay {
  std::unique_ptr<cost::CostModel>
      model;                // predicts by what was measured there for these schedules only
  Dataset dataset;          // the schedules that ran on both devices
  ReplayCoverage coverage;  // without the device
};
// Prepares `dataset` to be judged by the times of `other`: those with the same number of threads
// or, with `any_threads`, all, of which `other` must then have one. `translation` must outlive the
// result.
[[nodiscard]] Replay make_replay(const Dataset& dataset, const Dataset& other, bool any_threads,
                                 std::optional<Translation> translation = {});

}  // namespace hone::learn
