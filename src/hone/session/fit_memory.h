// fit_memory.h - keeps a model within a limit of memory. If the packed weights of an algorithm are
// too large (Winograd's are 1.8 to 9 times larger, Strassen's 1.75), another algorithm is used,
// first where that costs the least time per byte saved.
#pragma once

#include "hone/session/schedule_sources.h"
#include "hone/session/write_model.h"

namespace hone {

// Returns the bytes of all weights as the kernels of these schedules (one per group) read them.
// Equal weights of a group count once.
[[nodiscard]] Result<int64_t> packed_bytes(const ModelTasks& model,
                                           std::span<const schedule::Steps> schedules);

// Replaces schedules (one per group) until the weights, the workspaces and the tensors between
// kernels need at most `allowed` bytes, or no schedule with smaller weights is left. Updates the
// summaries. Returns the bytes that are needed then.
[[nodiscard]] Result<int64_t> fit_memory(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                                         const ScheduleSources& sources,
                                         const CompileOptions& options, int64_t allowed);

// Like write_model(), but within options.max_memory. It is an error if even the algorithms with the
// smallest weights do not fit. With require_tuned, only measured schedules replace others.
[[nodiscard]] Result<Written> write_within(ModelTasks& model,
                                           std::vector<schedule::Steps>& schedules,
                                           const ScheduleSources& sources,
                                           const std::string& output,
                                           const CompileOptions& options);

}  // namespace hone
