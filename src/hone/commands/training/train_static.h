// commands/training/train_static.h - fits the coefficients of a static score to measured schedules.
#pragma once

#include <span>
#include <string>

#include "hone/commands/training/training_data.h"
#include "hone/cost/static_score.h"
#include "hone/train.h"

namespace hone {

// Fits a score by the features that are `used`, for the one instruction set of all devices, and
// writes it to `output`. Two tasks are the least from which coefficients can be told apart; fewer
// are an error.
[[nodiscard]] Result<TrainSummary> train_static(const std::string& output,
                                                std::span<const MeasuredData> data,
                                                const cost::StaticOptions& used,
                                                const TrainOptions& options);

}  // namespace hone
