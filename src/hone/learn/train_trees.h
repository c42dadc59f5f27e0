// learn/train_trees.h - fits trees (cost/gbdt_model.h) to the measured schedules of data sets.
#pragma once

#include <span>

#include "hone/cost/gbdt_model.h"
#include "hone/learn/dataset.h"

namespace hone::learn {

struct DeviceTrials {
  const Dataset* dataset;
  const target::Target* target;
};
[[nodiscard]] Result<cost::TrainedTrees> train_trees(std::span<const DeviceTrials> devices,
                                                     cost::FeatureSet features,
                                                     const cost::BoostOptions& options = {});
// Returns the known trees, with their card, and a few more that correct them by what was measured
// since, as on a new device (few-shot transfer, Fasor section 4.2).
[[nodiscard]] Result<cost::TrainedTrees> adapt_trees(cost::TrainedTrees known,
                                                     std::span<const DeviceTrials> devices,
                                                     cost::TreeLibrary library = {});

}  // namespace hone::learn
