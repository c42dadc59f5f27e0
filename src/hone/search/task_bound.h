// search/task_bound.h - the time that no schedule of a task is expected to beat: the arithmetic of
// its cheapest algorithm at the device's peak, and every operand moved once, at the rates that a
// roofline has measured. Without a roofline, clocks and peaks are not known exactly, so rates start
// above the description. A measurement that was faster than the rates allow raises them, and from
// then on they stay above every measurement that comes close, as nobody knows where such a rate
// ends.
#pragma once

#include <optional>
#include <vector>

#include "hone/space/space.h"
#include "hone/trial/roofline.h"

namespace hone::search {

// The work that every schedule has to do, whichever algorithm it takes.
struct TaskWork {
  double flops = 0;  // FLOPs of the cheapest of the space's algorithms (Space::least_flops)
  double bytes = 0;  // needed bytes of inputs, constants and outputs (compute::bytes_moved)
};
[[nodiscard]] TaskWork least_work(const compute::Dag& dag, const space::Space& space);

class TaskBounds {
 public:
  // `roofline` is that of this machine. Without it, the target's description is used.
  TaskBounds(const target::Target& target, int threads,
             std::optional<trial::Roofline> roofline = {});
  // Learns that the work was done in so many seconds. Returns true if a rate rose.
  bool learn(const TaskWork& work, double seconds);
  [[nodiscard]] double seconds(const TaskWork& work) const;

 private:
  struct Times {
    double compute = 0, move = 0;  // seconds
  };
  // Returns the times at the rates of the roofline or description, without any excess.
  [[nodiscard]] Times times(const TaskWork& work) const;
  [[nodiscard]] double bytes_per_second(double bytes) const;
  void describe(const target::Cpu& cpu);
  void describe(const target::Gpu& gpu);

  // The factor by which the machine may be faster than the roofline or description tells.
  struct Excess {
    double factor = 1;
    bool known = false;  // from a roofline that nothing has beaten
    // Learns that a task was so many times faster than told. Returns true if the factor rose.
    bool learn(double faster);
  };

  // Data of so many bytes may come from here.
  struct Level {
    double bytes, bytes_per_second;
  };

  std::optional<trial::Roofline> roofline_;
  int threads_;
  Excess compute_, move_;
  std::vector<Level> levels_;  // from the description, like the following; the last has no limit
  double flops_per_second_ = 0;
};

}  // namespace hone::search
