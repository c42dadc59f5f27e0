// graph/tasks.h - a graph as the list of its tasks, each a Dag with the places of its operands.
// This is what the tuner, the compiler and the runtime need of a model. Names in a Dag are roles,
// never the model's. The calls of a loop stand in one list with all others.
#pragma once

#include "hone/compute/dag.h"
#include "hone/graph/decided_sizes.h"
#include "hone/graph/fuse.h"
#include "hone/graph/graph.h"

namespace hone::graph {

struct Argument {
  enum class Kind : uint8_t { kInput, kOutput, kArena, kConstant };
  Kind kind;
  int index;  // number of the model input, model output, buffer (TaskList::buffers) or constant
};

// A param with indices into another one, of which this is known.
struct IndexParam {
  size_t indices = 0, data = 0;  // params of the Dag
  RunPlaces places;
};

// The parts that a call needs of a param which lies as a dense array with these dimensions.
struct PartsOfParam {
  size_t param = 0;
  ShapeParts parts;
};

struct TaskCall {
  compute::Dag dag;
  uint64_t key = 0;
  std::vector<Argument> arguments;  // one per param of the Dag of its group, in order
  // Indices into the graph, in order; the results of the last one are written.
  std::vector<int> nodes;
  std::string name;  // name of the first node, for reports
  int group = 0;     // index into TaskList::groups
  // The innermost loop that repeats it, an index into TaskList::loops; -1 if none does. `nodes` is
  // then the outermost loop's node.
  int loop = -1;
  double runs = 1;  // the expected number of its runs in a run of the model
  std::vector<IndexParam> indices = {};
  std::vector<PartsOfParam> parts = {};
  // Buffers of the arena (i64) that its kernel reads beside the arguments: numbers of elements that
  // data decide.
  std::vector<int> sizes = {};
};

// Calls with one key, which share a schedule. Those with equal constants share packed weights, too.
struct TaskGroup {
  uint64_t key = 0;
  std::vector<int> calls;
};

// A copy of `bytes` bytes at the end of each turn, from one buffer to `start` + turn * `stride`
// bytes behind the begin of another one.
struct LoopCopy {
  int from = -1, to = -1;  // indices of TaskList::buffers
  int64_t bytes = 0, start = 0, stride = 0;
  // The shape of what is copied, a dense array, and what varies of it.
  Shape shape;
  ShapeParts parts;
};

// Calls that are repeated (graph/loop_body.h). Buffers are indices of TaskList::buffers, all of the
// arena, or -1.
struct TaskLoop {
  std::string name;                  // the name of its node
  int first_call = 0, end_call = 0;  // its calls, with those of the loops inside
  int begin = 0, end = 0;            // its begin and end among TaskList::boundaries
  int nested = 0;                    // the number of loops inside, which follow it in the list
  int64_t most = 0;                  // as in LoopBody
  std::string beyond;
  int condition = -1;  // bool: a turn begins if it is true
  int limit = -1;      // i64: the number of turns
  int turn = -1;       // i64: the number of the turn, which the runtime writes
  int turns = -1;      // i64: how many there were, which it writes at the end
  int shapes = -1;     // i64: two shapes of `rank` dimensions that the error names
  uint32_t rank = 0;
  std::vector<int> kept;  // buffers with contents of other turns, or from before
  std::vector<LoopCopy> copies;
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
  int sizes = -1;                    // the buffer with `hone.sizes`, which no call writes, or -1
  std::vector<DecidedSize> decided;  // numbers of elements that data decide
  std::vector<Buffer> buffers;    // all buffers of the graph; plan_memory places those of the arena
  std::vector<Tensor> constants;  // without duplicates
  std::vector<uint64_t> constant_hashes;
  std::vector<TaskCall> calls;    // in the order in which they run
  std::vector<TaskGroup> groups;  // in the order of their first call
  std::vector<TaskLoop> loops;    // in the order of their begin
  // The begins and ends of loops in order: each is before the call of this index. Calls stay
  // between the boundaries around them.
  std::vector<int> boundaries;
  [[nodiscard]] int boundaries_before(int call) const;
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
