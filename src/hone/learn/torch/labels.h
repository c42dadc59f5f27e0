// learn/torch/labels.h - gathers the labels of the rows of a batch.
#pragma once

#include "hone/learn/torch/batches.h"
#include "hone/learn/torch/losses.h"

namespace hone::learn::torch_module {

// Returns the labels of the batch's rows, among all rows; NaN where there are none.
[[nodiscard]] Labels labels_of(const HoneTorchRows& all, const Batch& batch);
// Returns all rows as one batch.
[[nodiscard]] Batch whole_batch(const HoneTorchRows& rows);

}  // namespace hone::learn::torch_module
