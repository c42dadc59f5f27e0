// session/assemble_limited.h - assembles a model whose shapes vary from run to run.
#pragma once

#include "hone/session/assemble.h"
#include "hone/session/model_tasks.h"

namespace hone {

// Replaces schedules by Strassen's algorithm, which computes sums of rows: those that a run does
// not have may be NaN. The others of a task's space are compared by prediction.
[[nodiscard]] Status keep_rows_apart(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                                     const CompileOptions& options);

// Assembles the model so that each kernel computes only what the sizes of a run need
// (session/limit_tasks.h).
[[nodiscard]] Result<Assembly> assemble_limited(ModelTasks& model,
                                                std::span<const schedule::Steps> schedules,
                                                const CompileOptions& options,
                                                const TogetherOptions& together);

}  // namespace hone
