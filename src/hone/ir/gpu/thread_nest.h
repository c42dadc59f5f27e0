// ir/gpu/thread_nest.h - the loops over threads around a statement, and which threads of the block
// their iterations are.
//
// The threads of a block are numbered from 0, 32 to a warp. Loops over threads that are nested in
// one another number their iterations in order; an iteration of loops over warps is a warp as a
// whole until a loop over its lanes is reached.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

inline constexpr int64_t kWarpThreads = 32;
inline constexpr int64_t kMaxBlockThreads = 1024;

struct ThreadDim {
  VarPtr var;
  int64_t extent;
  int64_t stride;  // the thread's number is the sum of variable * stride
  bool operator==(const ThreadDim&) const = default;
};
struct ThreadNest {
  std::vector<ThreadDim> dims;  // outermost first
  bool whole_warps = false;     // no loop over lanes was reached: an iteration is a warp
  // Returns whether another nest gives iterations with the same numbers to the same threads.
  [[nodiscard]] bool same_threads(const ThreadNest& other) const;
  // Returns whether the nest goes on with loops over lanes where `warps` ends, which has the same
  // warps.
  [[nodiscard]] bool same_warps(const ThreadNest& warps) const;
};

// Makes the nest of some loops, outermost first.
[[nodiscard]] ThreadNest thread_nest(const std::vector<const StmtNode*>& loops);

// Returns whether the statement, or one below it, is one that only GPUs run.
[[nodiscard]] bool is_gpu_code(const StmtNode& s);
// Returns the size of the block that runs the body of a phase: the threads of its largest nest.
[[nodiscard]] int64_t block_threads(const StmtNode& phase);

}  // namespace hone::ir
