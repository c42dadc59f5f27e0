// ir/random_gpu_program.h - random programs of GPUs for tests of passes, of the printer and of the
// interpreter: blocks, loops over threads of many shapes, shared memory, fragments, asynchronous
// copies, and no barriers. Each loop over threads is independent in itself, so the programs are
// right once barriers are inserted. Every access is in bounds.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] Program random_gpu_program(uint64_t seed);

}  // namespace hone::ir
