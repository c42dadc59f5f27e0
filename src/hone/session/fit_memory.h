// fit_memory.h - keeps a model within a bound of memory: where an algorithm needs larger weights
// (Winograd's are 1.8 to 9 times larger, Strassen's 1.75), another one takes its place, first where
// that costs the least time for a byte.
#pragma once

#include "hone/session/knowledge.h"
#include "hone/session/write_model.h"

namespace hone {

// Of all weights, equal ones once, as the kernels of these schedules (one per group) read them.
[[nodiscard]] Result<int64_t> packed_bytes(const ModelTasks& model,
                                           std::span<const schedule::Steps> schedules);

// Exchanges schedules (one per group) until the weights and the tensors between kernels take no
// more than `allowed` bytes or none can be exchanged for a smaller one. Updates the summaries.
// Returns what they take then.
[[nodiscard]] Result<int64_t> fit_memory(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                                         const Knowledge& knowledge, const CompileOptions& options,
                                         int64_t allowed);

// Like write_model(), within options.max_memory: an error if the algorithms with the smallest
// weights do not fit it. With require_tuned only measured schedules take another's place.
[[nodiscard]] Result<Written> write_within(ModelTasks& model,
                                           std::vector<schedule::Steps>& schedules,
                                           const Knowledge& knowledge, const std::string& output,
                                           const CompileOptions& options);

}  // namespace hone
