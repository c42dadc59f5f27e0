// short_code.h - machine code of bounded length: a task that was never measured may get a schedule
// that the compiler refuses, where what follows a product is long and repeated for each of its
// registers (internal to the facade).
#pragma once

#include "hone/model_tasks.h"

namespace hone {

// The steps, or if their code is too long (codegen::CompileOptions), the same loops without
// unrolling and registers, or the space's default ones so; Code::kUnsupported if all are.
[[nodiscard]] Result<schedule::Steps> short_steps(const ModelTasks& model, size_t group,
                                                  const schedule::Steps& steps);

// For each group. Updates the summaries.
[[nodiscard]] Status shorten(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                             ThreadPool& pool);

}  // namespace hone
