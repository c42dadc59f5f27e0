// short_code.h - machine code of bounded length: where what follows a product is long and repeated
// for each of its registers, the compiler may refuse the schedule that was predicted to be the
// best.
#pragma once

#include "hone/session/model_tasks.h"

namespace hone {

// The steps, or if their code is too long (codegen::CompileOptions), the space's default ones, the
// same loops without unrolling and registers, default ones so, or plain loops: the first that
// compile.
[[nodiscard]] Result<schedule::Steps> short_steps(const ModelTasks& model, size_t group,
                                                  const schedule::Steps& steps);

// For each group; updates the summaries. Whether any schedule is another one now.
[[nodiscard]] Result<bool> shorten_code(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                                        const CompileOptions& options);

}  // namespace hone
