// schedule/lift_loops.h - makes loops of a stage's body axes of the stage, so that their iterations
// are points, which threads share:
//
//   points i:     for j in 0..n { y[i, j] = x[place(i), j] }
//   -->  points i, j in 0..n/4:   vectorized v in 0..4 { y[i, j * 4 + v] = x[place(i), j * 4 + v] }
//
// All loops of one name become one axis. Whatever their iterations access of the results has the
// loops' variable in one place, so that different iterations have different elements.
#pragma once

#include "hone/compute/dag.h"
#include "hone/schedule/step.h"

namespace hone::schedule {

// Returns the stage with the loops of that step as its last axes. It is an error if it has no such
// loops, if iterations depend on each other, or if the vectors do not divide the last loop.
[[nodiscard]] Result<compute::Stage> lift_loops(const compute::Stage& stage, const Lift& step);

// A loop of a body that can be lifted, with its iterations.
struct LiftableLoop {
  std::string name;
  int64_t extent = 1;
  bool is_store = false;  // its body is one store, so it may run as vectors
};
// Returns the loops that can be lifted together, in the order of the body.
[[nodiscard]] std::vector<LiftableLoop> liftable_loops(const compute::Stage& stage);

// Returns the distance in memory between the first result's elements of neighbouring points of an
// axis of a stage with a body; 0 if that is not known.
[[nodiscard]] int64_t body_stride(const compute::Stage& stage, const ir::VarPtr& axis);

}  // namespace hone::schedule
