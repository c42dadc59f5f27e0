// search/task_bound.h - what no schedule of a task is expected to beat: the arithmetic of its
// cheapest algorithm at the device's peak, and every operand moved once, at the rates that a
// roofline says were measured. Without one clocks and peaks are not known exactly: rates start
// above the description. Whatever was measured to be faster raises them, and from then on they stay
// above whatever comes close: nobody knows where such a rate ends.
#pragma once

#include <optional>

#include "hone/space/space.h"
#include "hone/trial/roofline.h"

namespace hone::search {

// What any schedule has to do, whichever algorithm it takes.
struct TaskWork {
  double flops = 0;  // of the cheapest of the space's algorithms (Space::least_flops)
  double bytes = 0;  // of what it needs of inputs, constants and outputs (compute::bytes_moved)
};
[[nodiscard]] TaskWork least_work(const compute::Dag& dag, const space::Space& space);

class TaskBounds {
 public:
  // `roofline`: of this machine; none: its description has to do.
  TaskBounds(const target::Target& target, int threads,
             std::optional<trial::Roofline> roofline = {});
  // The work was done in so many seconds: true if a rate rose.
  bool learn(const TaskWork& work, double seconds);
  [[nodiscard]] double seconds(const TaskWork& work) const;

 private:
  struct Times {
    double compute = 0, move = 0;  // seconds
  };
  [[nodiscard]] Times times(const TaskWork& work) const;  // at the rates as they are told
  [[nodiscard]] double bytes_per_second(double bytes) const;

  // How much faster than told may be.
  struct Excess {
    double factor = 1;
    bool known = false;  // told by a roofline that nothing has beaten
    // A task was so many times faster than told: true if the factor rose.
    bool learn(double faster);
  };

  std::optional<trial::Roofline> roofline_;
  int threads_, busy_cores_;
  Excess compute_, move_;
  std::vector<target::Cache> caches_;  // as described, as what follows
  double memory_bytes_per_cycle_, cycles_per_second_, flops_per_second_;
};

}  // namespace hone::search
