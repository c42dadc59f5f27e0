// ir/passes/tile_loops.h - questions about loops and addresses that the prefetching passes share.
#pragma once

#include "hone/ir/linear.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

inline constexpr int64_t kLineBytes = 64;

// Returns whether s is a loop of the register tile: unrolled or vectorized.
[[nodiscard]] bool is_unit(const StmtNode& s);
// Returns whether s is or contains a serial loop.
[[nodiscard]] bool has_serial_loop(const Stmt& s);
// Returns whether the loop starts at 0 and has a constant extent.
[[nodiscard]] bool counts_from_zero(const StmtNode& loop);

// Returns the row-major index of the loaded element in its buffer.
[[nodiscard]] Linear flat_index(const Expr& load);

// Returns the number of elements in a line of the cache, 1 at least.
[[nodiscard]] int64_t elements_of_line(const BufferPtr& buffer);
// Returns hints for `count` elements from the flat index `first` on.
[[nodiscard]] std::vector<Stmt> prefetch_lines(const BufferPtr& buffer, const Expr& first,
                                               int64_t count, int cache);

}  // namespace hone::ir
