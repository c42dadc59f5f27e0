// graph/tasks.h - a graph as the list of its tasks, each a Dag with the places of its operands.
// This is what the tuner, the compiler and the runtime need of a model. Names in a Dag are roles,
// never the model's.
#pragma once

#include "hone/compute/dag.h"
#include "hone/graph/fuse.h"
#include "hone/graph/graph.h"

namespace hone::graph {

struct Argument {
  enum class Kind : uint8_t { kInput, kOutput, kArena, kConstant };
  Kind kind;
  int index;  // number of the model input, model output, buffer (TaskList::buffers) or constant
};

struct TaskCall {
  compute::Dag dag;
  uint64_t key = 0;
  std::vector<Argument> arguments;  // one per param of the Dag of its group, in order
  // Indices into the graph, in order; the results of the last one are written.
  std::vector<int> nodes;
  std::string name;  // name of the first node, for reports
  int group = 0;     // index into TaskList::groups
};

// Calls with one key, which share a schedule. Those with equal constants share packed weights, too.
struct TaskGroup {
  uint64_t key = 0;
  std::vector<int> calls;
};

struct TensorInfo {
  std::string name;
  DType dtype;
  Shape shape;
  // For an output whose shape depends on data (`shape` is the largest): the buffer of the arena
  // that has its extents as i64 when all calls are done.
  int extents = -1;
};

struct TaskList {
  std::vector<TensorInfo> inputs, outputs;  // the inputs without `hone.sizes`
  Varying varying;
  int sizes = -1;                 // the buffer with `hone.sizes`, which no call writes, or -1
  std::vector<Buffer> buffers;    // all buffers of the graph; plan_memory places those of the arena
  std::vector<Tensor> constants;  // without duplicates
  std::vector<uint64_t> constant_hashes;
  std::vector<TaskCall> calls;    // in the order in which they run
  std::vector<TaskGroup> groups;  // in the order of their first call
};

struct TaskOptions {
  int max_followers = FuseOptions().max_followers;
  // Returns whether one task is to replace two. If it is not set, none does.
  std::function<bool(const compute::Dag& joined, const compute::Dag& first,
                     const compute::Dag& second)>
      join = {};
};

// Extracts the tasks of an optimized graph.
[[nodiscard]] Result<TaskList> extract_tasks(const Graph& graph, const TaskOptions& options = {});

// Returns a hash of a call's constants. Together with the key it identifies the call's computation.
[[nodiscard]] uint64_t constants_hash(const TaskList& tasks, const TaskCall& call);
[[nodiscard]] double total_flops(const TaskList& tasks);
// Returns a table: multiplicity, class and shapes, FLOPs, name of the first call.
[[nodiscard]] std::string describe(const TaskList& tasks);

}  // namespace hone::graph
