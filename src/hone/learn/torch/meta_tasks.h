// learn/torch/meta_tasks.h - draws the tasks of meta-learning: of some tuning tasks a few schedules
// that a net is adapted to, and others by which the adapted net is judged.
#pragma once

#include <cstdint>
#include <vector>

#include "hone/learn/torch/batches.h"

namespace hone::learn::torch_module {

struct MetaTask {
  Batch support, query;
};

// Draws a batch of tasks, each of `ways` different tuning tasks; those that have too few schedules
// are left out. There must be `ways` others.
[[nodiscard]] std::vector<MetaTask> draw_tasks(const HoneTorchRows& rows,
                                               const HoneTorchMetaOptions& meta, uint64_t seed);
// Returns tasks to judge by, the same for each seed: every tuning task with enough schedules is in
// one of them. There are none if too few tuning tasks are left.
[[nodiscard]] std::vector<MetaTask> judged_tasks(const HoneTorchRows& rows,
                                                 const HoneTorchMetaOptions& meta, uint64_t seed);

}  // namespace hone::learn::torch_module
