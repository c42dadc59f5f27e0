// backend/gpu/whole_tiles.h - makes what a warp does with rows and columns of fragments run over
// whole tiles (matrix_layout.h), because then all lanes run the same loops.
#pragma once

#include "hone/backend/gpu/warp_fragments.h"

namespace hone::backend::gpu {

// Returns whether an index of rows (columns) of a fragment inside the loop uses its variable.
[[nodiscard]] bool runs_over(const ir::StmtNode& loop, bool columns, const Fragments& fragments);

// Returns an equal statement in which a loop over rows or columns of fragments has a multiple of 8
// iterations, with a test if it had others. An index that is one row or column, as a loop of one
// iteration leaves it, gets a loop with such a test.
[[nodiscard]] ir::Stmt with_whole_tiles(const ir::Stmt& nest, const Fragments& fragments);

}  // namespace hone::backend::gpu
