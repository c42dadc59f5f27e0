// search/task_bound.h - what no schedule of a task is expected to beat: the arithmetic of its
// cheapest algorithm at the device's peak, and every operand moved once. Clocks and peaks of real
// machines are not known exactly: rates start above the description and rise with what was
// measured.
#pragma once

#include "hone/space/space.h"

namespace hone::search {

// What any schedule has to do, whichever algorithm it takes.
struct TaskWork {
  double flops = 0;  // of the cheapest of the space's algorithms (Space::least_flops)
  double bytes = 0;  // of what it needs of inputs, constants and outputs (compute::bytes_moved)
};
[[nodiscard]] TaskWork least_work(const compute::Dag& dag, const space::Space& space);

class TaskBounds {
 public:
  TaskBounds(const target::Target& target, int threads);
  // The work was done in so many seconds: true if a rate rose.
  bool learn(const TaskWork& work, double seconds);
  [[nodiscard]] double seconds(const TaskWork& work) const;

 private:
  double flops_per_second_, bytes_per_second_;
};

}  // namespace hone::search
