// ir/passes/gpu/thread_access.h - the loads and stores of memory that the threads of a block share,
// and whether two of them may touch one element from different threads.
//
// The question is whether a barrier is needed between two accesses, so "no" needs a proof and
// everything else is "yes". A proof compares the indices as linear forms: terms of variables that
// the block shares cancel, and what is left decides digit by digit which iterations meet.
#pragma once

#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/ranges.h"

namespace hone::ir {

struct ThreadAccess {
  const Buffer* buffer = nullptr;
  bool stores = false;
  bool async = false;     // takes place only when the group that it belongs to is waited for
  bool together = false;  // done by several threads, in a way that is not known here
  ThreadNest nest;        // its variables are those of canonical_thread_var()
  std::vector<Expr> index;
  // The variables of loops inside of those over threads, with their values.
  std::vector<std::pair<VarPtr, Interval>> inner;
};
[[nodiscard]] bool equal(const ThreadAccess& a, const ThreadAccess& b);

// Says which buffers matter: shared memory, and global memory that the phase stores to.
class SharedBuffers {
 public:
  explicit SharedBuffers(const StmtNode& phase);
  [[nodiscard]] bool contains(const BufferPtr& buffer) const;

 private:
  std::vector<const Buffer*> stored_;
};

// Adds the accesses of a statement whose loops over threads are inside of it. `together`: the
// statement itself is run by several threads together.
void add_accesses(const StmtNode& s, const SharedBuffers& buffers, bool together,
                  std::vector<ThreadAccess>& accesses);

// Returns an index in which equal values of quotients and remainders look the same.
[[nodiscard]] Expr canonical_index(const Expr& e);

// Returns whether two accesses to one buffer, one of them a store, may touch the same element from
// different threads of the block, while the variables that the block shares have the same values in
// both indices.
[[nodiscard]] bool may_conflict(const ThreadAccess& a, const ThreadAccess& b);

// More iterations than this, in one access, are not looked into one by one: may_conflict() and
// ir/gpu/check_barriers.h then both say that there may be a conflict, unless they are in different
// slots of a ring.
inline constexpr int64_t kMaxProvenIterations = 1 << 14;

}  // namespace hone::ir
