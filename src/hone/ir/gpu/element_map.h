// ir/gpu/element_map.h - which elements of a buffer which threads of a block touch, found by
// running through the iterations of an access.
#pragma once

#include <optional>

#include "hone/ir/stmt.h"

namespace hone::ir {

// An access of a statement that the threads of a block run, with the loops around it that belong to
// the statement.
struct BlockAccess {
  BufferPtr buffer;
  std::vector<Expr> index;  // one that is null may be any number
  bool stores = false;
  bool async = false;
  bool together = false;               // by threads that are not known one by one
  std::vector<const StmtNode*> loops;  // outermost first
  std::vector<VarPtr> elements;        // variables that run over the `extents` of a box
  std::vector<int64_t> extents;
};
// Returns the accesses of a statement to shared and global memory; `warp`: the statement is run by
// one warp, inside of a loop over warps.
[[nodiscard]] std::vector<BlockAccess> block_accesses(const StmtNode& s, bool warp);

// A value of a variable that the block shares, in the earlier of two accesses, by those of the
// later one; a variable that the earlier one alone knows stands for "unknown".
using SharedValues = VarMap;

enum class Meeting : uint8_t { kNever, kSameThread, kOtherThreads };
// Says whether two accesses may touch the same element, and from which threads.
[[nodiscard]] Meeting meeting(const BlockAccess& earlier, const SharedValues& values,
                              const BlockAccess& later);

}  // namespace hone::ir
