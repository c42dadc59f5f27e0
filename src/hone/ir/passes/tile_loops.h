// ir/passes/tile_loops.h - what passes that prefetch ask about loops and addresses.
#pragma once

#include "hone/ir/linear.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

inline constexpr int64_t kLineBytes = 64;

// A loop of the register tile: unrolled or vectorized.
[[nodiscard]] bool is_unit(const StmtNode& s);
// Whether s is or holds a loop that runs step by step.
[[nodiscard]] bool has_serial_loop(const Stmt& s);
// Whether s starts at 0 and has a constant extent.
[[nodiscard]] bool counts_from_zero(const StmtNode& loop);

// The element's number in its buffer.
[[nodiscard]] Linear flat_index(const Expr& load);

// Hints for `count` elements from the flat index `first`.
[[nodiscard]] std::vector<Stmt> prefetch_lines(const BufferPtr& buffer, const Expr& first,
                                               int64_t count, int cache);

}  // namespace hone::ir
