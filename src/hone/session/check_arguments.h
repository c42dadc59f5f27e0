// check_arguments.h - checks that the calls of a model give the arguments that its kernels take.
#pragma once

#include <span>

#include "hone/graph/tasks.h"
#include "hone/session/kernel.h"

namespace hone {

// Checks every call against the kernel of its group; `kernels` has one element per group. An error
// names the call. It is always a bug: a task would run the kernel of another task with arguments
// that are not that kernel's. The parameter `offsets` has the bytes, per group and argument, by
// which a kernel's begins behind the call's; a list that is empty stands for none.
[[nodiscard]] Status check_arguments(const graph::TaskList& tasks,
                                     std::span<const KernelPtr> kernels,
                                     std::span<const std::vector<int64_t>> offsets = {});

}  // namespace hone
