// session/decided_params.h - the params by which a kernel reads sizes that data decide.
#pragma once

#include <vector>

#include "hone/session/limit_tasks.h"

namespace hone {

// Returns the buffers that the kernel reads, in the order of their params.
[[nodiscard]] std::vector<int> decided_buffers(const KernelLimits& limits);
// Returns the program with such params behind all others, which reads from them what it read from
// `sizes`. These stay a param if it reads others of them.
[[nodiscard]] ir::Program with_decided_params(ir::Program program, const KernelLimits& limits,
                                              const ir::BufferPtr& sizes);

}  // namespace hone
