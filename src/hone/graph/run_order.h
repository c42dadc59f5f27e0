// graph/run_order.h - which calls of a model run together, their tiles dealt to the threads as
// those of one kernel, and in which order. A fork and join, and threads that wait for the last tile
// of a kernel, cost time; together, kernels pay for it once. Kernels that fill all threads evenly
// for long stay apart: nothing is gained, and each has the caches for itself.
#pragma once

#include <span>

#include "hone/graph/memory_plan.h"

namespace hone::graph {

struct CallCost {
  double seconds = 0;  // on one thread
  int64_t tiles = 1;   // that may run at the same time
  bool alone = false;  // takes no company
};

struct RunOrderOptions {
  int threads = 1;
  double fork_join_seconds = 0;
  // So many calls that do not run yet are looked through for company; 0: all run one by one.
  int window = 64;
};

// Groups of calls in the order in which they run; those of a group run together, in the group's
// order, the largest tiles first: what is dealt last is small.
using RunOrder = std::vector<std::vector<int>>;
[[nodiscard]] RunOrder plan_run_order(const TaskList& tasks, std::span<const CallCost> costs,
                                      const RunOrderOptions& options);
[[nodiscard]] std::vector<int> in_order(const RunOrder& order);  // the calls
// What plan_memory() wants to know of an order: the group of each call.
[[nodiscard]] std::vector<int> moments(const RunOrder& order, size_t num_calls);

// For each call those before it in the list that must be done when it starts: they write what it
// reads or writes, or read what it writes. Exact to the boxes of elements that calls touch.
[[nodiscard]] std::vector<std::vector<int>> dependences(const TaskList& tasks);
// That each call runs once, behind all that it depends on.
[[nodiscard]] Status verify(const RunOrder& order, const TaskList& tasks);

struct RunPlan {
  RunOrder order;
  MemoryPlan memory;
};
// What an arena may take: so many times that of calls one by one, or so many bytes if that is more.
struct ArenaBound {
  double growth = 1;
  int64_t bytes = 0;
};
// An order and the memory for it. What runs together cannot share memory: the window is made
// smaller until the arena keeps to the bound.
[[nodiscard]] RunPlan plan_run(const TaskList& tasks, std::span<const CallCost> costs,
                               std::span<const InPlace> in_place, RunOrderOptions options,
                               const ArenaBound& bound);

// Seconds from start to end of kernels that run together on so many threads.
[[nodiscard]] double seconds_together(std::span<const CallCost> kernels,
                                      const RunOrderOptions& options);

}  // namespace hone::graph
