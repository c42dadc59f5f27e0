// commands/training/train_net.h - trains a neural cost model and writes it as ONNX.
#pragma once

#include "hone/commands/training/training_data.h"
#include "hone/train.h"

namespace hone {

// Does what train() does for a net. `options.cost` is its family, or empty with `options.from`.
[[nodiscard]] Result<TrainSummary> train_net(const std::string& output,
                                             const std::vector<MeasuredData>& data,
                                             TrainOptions options);

}  // namespace hone
