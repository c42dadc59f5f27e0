// graph/run_order.h - chooses which calls of a model run together, and in which order. The threads
// share the tiles of such calls as if they were of one kernel. A fork and join, and threads that
// wait for the last tile of a kernel, cost time, which kernels that run together spend only once.
// Kernels that keep all threads evenly busy for long run alone: nothing is gained, and each has the
// caches for itself. Calls stay on their side of the begins and ends of loops.
#pragma once

#include <span>

#include "hone/graph/memory_plan.h"

namespace hone::graph {

struct CallCost {
  double seconds = 0;  // on one thread
  int64_t tiles = 1;   // number of tiles, which may run at the same time
  bool alone = false;  // must not run together with others
};

struct RunOrderOptions {
  int threads = 1;
  double fork_join_seconds = 0;
  // The number of later calls among which partners are looked for; 0 means that all run one by one.
  int window = 64;
};

// Groups of calls in the order in which they run. The calls of a group run together, with the
// largest tiles first, so that the last tiles are small.
using RunOrder = std::vector<std::vector<int>>;
[[nodiscard]] RunOrder plan_run_order(const TaskList& tasks, std::span<const CallCost> costs,
                                      const RunOrderOptions& options);
[[nodiscard]] std::vector<int> in_order(const RunOrder& order);  // all calls in order
// Returns the time step of each call, which is its group, for plan_memory().
[[nodiscard]] std::vector<int> time_steps(const RunOrder& order, size_t num_calls);

// Returns, for each call, the earlier calls that must be done when it starts: they write what it
// reads or writes, or read what it writes. Accesses count by their bounding boxes of elements.
[[nodiscard]] std::vector<std::vector<int>> dependences(const TaskList& tasks);
// Checks that each call runs once, after all that it depends on.
[[nodiscard]] Status verify(const RunOrder& order, const TaskList& tasks);

struct RunPlan {
  RunOrder order;
  MemoryPlan memory;
};
// The limit of an arena: this factor of the arena for calls one by one, or this many bytes if that
// is more.
struct ArenaBound {
  double growth = 1;
  int64_t bytes = 0;
};
// Chooses an order and plans the memory for it. Calls that run together cannot share memory, so the
// window is reduced until the arena is within the bound.
[[nodiscard]] RunPlan plan_run(const TaskList& tasks, std::span<const CallCost> costs,
                               std::span<const InPlace> in_place, RunOrderOptions options,
                               const ArenaBound& bound);

// Returns the seconds from start to end of kernels that run together.
[[nodiscard]] double seconds_together(std::span<const CallCost> kernels,
                                      const RunOrderOptions& options);

}  // namespace hone::graph
