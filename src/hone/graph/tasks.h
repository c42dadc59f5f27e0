// graph/tasks.h - a graph as the list of its tasks: for each a Dag and where its operands lie. What
// the tuner, the compiler and the runtime need of a model; names in a Dag are roles, never the
// model's.
#pragma once

#include "hone/compute/dag.h"
#include "hone/graph/fuse.h"
#include "hone/graph/graph.h"

namespace hone::graph {

struct Argument {
  enum class Kind : uint8_t { kInput, kOutput, kArena, kConstant };
  Kind kind;
  int index;  // of the model input, model output, buffer (TaskList::buffers) or constant
};

struct TaskCall {
  compute::Dag dag;
  uint64_t key = 0;
  std::vector<Argument> arguments;  // one per dag.params, in order, which is that of its group
  std::vector<int> nodes;           // of the graph, in order; the last one's results are written
  std::string name;                 // the first node's, for tables
  int group = 0;                    // in TaskList::groups
};

// Calls with one key: they share a schedule. Those with equal constants share packed weights too.
struct TaskGroup {
  uint64_t key = 0;
  std::vector<int> calls;
};

struct TensorInfo {
  std::string name;
  DType dtype;
  Shape shape;
  // Of an output whose shape depends on data (`shape` is the largest): the buffer of the arena that
  // holds its extents, i64, when all calls are done.
  int extents = -1;
};

struct TaskList {
  std::vector<TensorInfo> inputs, outputs;
  std::vector<Buffer> buffers;    // all of the graph; those of the arena are placed by plan_memory
  std::vector<Tensor> constants;  // equal ones once
  std::vector<uint64_t> constant_hashes;
  std::vector<TaskCall> calls;    // in the order in which they run
  std::vector<TaskGroup> groups;  // in the order of their first call
};

struct TaskOptions {
  int max_followers = FuseOptions().max_followers;
  // Whether one task shall take the place of two; none does if it is not set.
  std::function<bool(const compute::Dag& joined, const compute::Dag& first,
                     const compute::Dag& second)>
      join = {};
};

// Needs an optimized graph.
[[nodiscard]] Result<TaskList> extract_tasks(const Graph& graph, const TaskOptions& options = {});

// Hash of a call's constants: with the key it says whether two calls are the same computation.
[[nodiscard]] uint64_t constants_hash(const TaskList& tasks, const TaskCall& call);
[[nodiscard]] double total_flops(const TaskList& tasks);
// A table: multiplicity, class and shapes, FLOPs, name of the first call.
[[nodiscard]] std::string describe(const TaskList& tasks);

}  // namespace hone::graph
