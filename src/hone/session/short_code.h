// short_code.h - limits the length of machine code: if the operators that follow a product are long
// and are repeated for each of its registers, the compiler may refuse the schedule with the best
// prediction.
#pragma once

#include "hone/session/model_tasks.h"

namespace hone {

// Returns the first of these schedules whose code is not too long (backend::Backend::compile):
// the given steps; the default schedule of the space; the given steps without unrolling and
// registers; all default schedules without these; plain loops.
[[nodiscard]] Result<schedule::Steps> short_steps(const ModelTasks& model, size_t group,
                                                  const schedule::Steps& steps);

// Replaces the schedule of each group by short_steps() of it, and updates the summaries. Returns
// whether any schedule was replaced.
[[nodiscard]] Result<bool> shorten_code(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                                        const CompileOptions& options);

}  // namespace hone
