// session/decided_params.h - the params by which a kernel reads sizes that data decide.
#pragma once

#include "hone/session/limit_tasks.h"

namespace hone {

// Returns the program with a param for each buffer (TaskCall::sizes) behind all others, which reads
// from them what it read from `sizes`. These stay a param if it reads others of them.
[[nodiscard]] ir::Program with_decided_params(ir::Program program, const KernelLimits& limits,
                                              const ir::BufferPtr& sizes);

}  // namespace hone
