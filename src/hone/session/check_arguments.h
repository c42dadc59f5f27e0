// check_arguments.h - what the kernels of a model take, compared with what its calls give.
#pragma once

#include <span>

#include "hone/graph/tasks.h"
#include "hone/session/kernel.h"

namespace hone {

// `kernels`: one per group. An error, which names the call, is a bug: a task would run the kernel
// of another one with a list of arguments that is not that kernel's.
[[nodiscard]] Status check_arguments(const graph::TaskList& tasks,
                                     std::span<const KernelPtr> kernels);

}  // namespace hone
