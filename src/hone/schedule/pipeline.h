// schedule/pipeline.h - copies to shared memory that work ahead of the loop that reads them: the
// step, what it needs, and the loop that lowering makes of it.
//   for i { p -> S; compute from S }     (depth 3, asynchronously)
//   ->  alloc S[3]:  p(0) -> S[0]; commit; p(1) -> S[1]; commit
//       for i { wait 1; if i + 2 < n { p(i + 2) -> S[(i + 2) % 3] }; commit; compute from S[i % 3]
//       }
//   or, through registers:
//   ->  alloc S[2]:  p(0) -> S[0]
//       for i { if i + 1 < n { p(i + 1) -> F }; compute; if i + 1 < n { F -> S[(i + 1) % 2] } }
// Threads have met when an iteration's copies are there, so the slot that the iteration before it
// read is free at that point: one barrier serves both.
#pragma once

#include <functional>

#include "hone/ir/stmt.h"
#include "hone/schedule/bounds.h"

namespace hone::schedule {

// Returns whether asynchronous copies can do what the stage computes: it copies elements, or stores
// zeros instead.
[[nodiscard]] bool is_plain_copy(const compute::Stage& stage);
[[nodiscard]] Status pipeline(const Pipeline& step, State& state);
// Says why the stage, which works ahead, cannot, as the state is after all steps.
[[nodiscard]] Status check_pipeline(const State& state, const Bounds& bounds, int stage);

struct AheadCopy {
  ir::Stmt body;         // the copy for the iteration that the loop's variable names
  ir::BufferPtr buffer;  // the ring
  int64_t depth;
  Transport transport;
};

struct PipelinedLoop {
  ir::VarPtr variable;
  ir::Expr extent;
  std::vector<AheadCopy> copies;

  // Returns the statements that stand in place of the loop. `make` makes the loop around what its
  // iterations do, and `body` is what they compute.
  [[nodiscard]] std::vector<ir::Stmt> around(
      std::vector<ir::Stmt> body, const std::function<ir::Stmt(std::vector<ir::Stmt>)>& make) const;
};

}  // namespace hone::schedule
