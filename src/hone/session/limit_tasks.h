// session/limit_tasks.h - which elements of the tasks' results a run needs whose sizes are smaller
// than the largest (graph::Varying).
//
// The shapes of the model's outputs say what is needed of them. What is needed of all other tensors
// follows from the tasks that read them (ir/passes/size_limits.h), from the last task to the first,
// so no operator has a rule here: masks are what compares places with `hone.sizes`, and of gathers
// and boxes the graph says where they read (graph::TaskCall::indices, parts). The task is asked: a
// schedule computes each element from the same elements. Schedules that compute sums of rows in
// place of rows (Winograd, Strassen) need more: there the program is asked, and so it is where
// reductions end early.
#pragma once

#include <functional>
#include <span>

#include "hone/graph/tasks.h"
#include "hone/ir/passes/limit_loops.h"
#include "hone/ir/passes/values_beyond.h"
#include "hone/schedule/step.h"
#include "hone/search/lower_schedule.h"

namespace hone {

// An element of a tensor, by its offset in memory counted in elements, is needed only if
//   (offset / stride % extent) * scale - beyond < unit * size;
// the extent is 0 for the slowest dimension. It is the same for all shapes that the memory has.
struct OffsetLimit {
  int form = 0;
  int64_t stride = 1, extent = 0;
  int64_t scale = 1, beyond = 0, unit = 1;
};
// Returns the limit that a limit of a dimension is for an array of this shape, and the other way
// round; nothing if it cannot be said that way.
[[nodiscard]] std::optional<OffsetLimit> to_offsets(const ir::SizeLimit& limit, const Shape& shape);
[[nodiscard]] std::optional<ir::SizeLimit> to_dimension(const OffsetLimit& limit,
                                                        const Shape& shape);
// Returns the same limit, where rows of several elements are needed together, by their number.
[[nodiscard]] OffsetLimit with_whole_rows(OffsetLimit limit);
// Returns the limits of an array whose dimensions have these parts.
[[nodiscard]] std::vector<OffsetLimit> limits_of_parts(const graph::ShapeParts& parts,
                                                       const Shape& shape);

// A size that data decide, as a kernel reads it.
struct DecidedSource {
  size_t buffer = 0;     // index into TaskCall::sizes
  int64_t element = 0;   // index into the buffer
  int64_t elements = 0;  // number of those that the buffer has
  bool operator==(const DecidedSource&) const = default;
};

// The parts that a kernel may leave out: what its outputs' limits say, and the terms at the ends of
// reductions that change nothing (ir/passes/values_beyond.h).
struct KernelLimits {
  std::vector<ir::ParamLimit> outputs;
  std::vector<std::pair<size_t, ir::ReductionEnd>> ends;  // by the index of the stage
  std::vector<int64_t> multiples;                         // as in ir::RunFacts
  // Sizes that data decide: form `decided_from` + i above is element i.
  std::vector<DecidedSource> decided;
  int decided_from = 0;
  [[nodiscard]] bool any() const { return !outputs.empty() || !ends.empty(); }
  bool operator==(const KernelLimits&) const = default;
};

// A task that ends its reductions there, with the sizes as its last param.
[[nodiscard]] compute::Dag with_ends(compute::Dag dag, const KernelLimits& limits,
                                     const ir::BufferPtr& sizes);

// The needs of a run for each of TaskList::calls: parts of it, and whether it needs the call at
// all, as it does not need a step of a recurrent net behind the end of its sequence.
struct CallLimits {
  std::vector<KernelLimits> kernels;
  std::vector<std::optional<ir::RunNeed>> runs;  // nothing: all runs need the call
  std::vector<std::vector<int>> sizes;           // TaskCall::sizes
};
// Returns the limits of all calls. `lower` returns the program of a call's schedule for a Dag,
// which is that of the call or one with ends; `mixes` says whether that schedule mixes rows.
struct ScheduledCalls {
  std::function<bool(const graph::TaskCall&)> mixes;
  std::function<Result<search::ProgramPtr>(const graph::TaskCall&, const compute::Dag&)> lower;
};
[[nodiscard]] Result<CallLimits> limits_of_calls(const graph::TaskList& tasks,
                                                 const ScheduledCalls& calls);

// The same calls in groups whose kernels have their limits in common, too.
struct LimitedTasks {
  graph::TaskList tasks;
  std::vector<size_t> group_before;  // for each group, the one that its calls were in
  std::vector<KernelLimits> limits;  // one per group
};
[[nodiscard]] LimitedTasks split_groups(const graph::TaskList& tasks, const CallLimits& limits);

}  // namespace hone
