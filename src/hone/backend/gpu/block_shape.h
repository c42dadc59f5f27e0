// backend/gpu/block_shape.h - finds how many threads a block of a phase has, what they share and
// what each owns.
#pragma once

#include <map>
#include <vector>

#include "hone/backend/gpu/dialect.h"
#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::backend::gpu {

struct BlockShape {
  int64_t threads = 1;
  std::vector<ir::BufferPtr> shared;          // in program order
  std::map<const ir::Buffer*, size_t> owned;  // fragments: leading indices that say whose they are
  int64_t shared_bytes = 0;                   // each buffer begins at a multiple of 16
  int64_t private_bytes = 0;                  // arrays of a thread that live at the same time
};

// Returns an error if the body of a phase, which ir::verify() accepts, has a statement that there
// is no code for.
[[nodiscard]] Status check_statements(const ir::StmtNode& body, Dialect dialect);
// Looks at the body of a phase whose statements have code, after spread_over_lanes() for CUDA.
[[nodiscard]] Result<BlockShape> block_shape(const ir::StmtNode& body);

// Returns how many threads the loops over threads in a statement span; 1 if there are none.
[[nodiscard]] int64_t threads_of(const ir::StmtNode& s);
// Returns how many threads run one iteration of a loop over threads.
[[nodiscard]] int64_t threads_of_iteration(const ir::StmtNode& loop);
// Returns the bytes that a buffer takes in the shared memory of a block.
[[nodiscard]] int64_t shared_size(const ir::Buffer& buffer);

}  // namespace hone::backend::gpu
