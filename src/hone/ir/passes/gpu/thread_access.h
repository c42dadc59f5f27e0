// ir/passes/gpu/thread_access.h - the loads and stores of memory that the threads of a block share.
#pragma once

#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/ranges.h"

namespace hone::ir {

// Accesses with more loops over threads, or more dimensions, are not looked into.
inline constexpr size_t kMaxAccessDims = 8;

// Returns the variable that stands for the loop over threads at some depth, in all accesses.
[[nodiscard]] const VarPtr& canonical_thread_var(size_t depth);

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

}  // namespace hone::ir
