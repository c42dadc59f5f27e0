// schedule/state.h - the result of a schedule's steps on a Dag: stages with ordered loops and the
// places where they are computed. A State is cheap to copy; `apply` replays one step on it.
#pragma once

#include <memory>
#include <ranges>

#include "hone/base/small_vector.h"
#include "hone/compute/affine.h"
#include "hone/compute/op_counts.h"
#include "hone/schedule/step.h"

namespace hone::schedule {

// A stage with its reads and writes as matrices and other derived facts. It is shared between
// States and never changes.
struct StageInfo {
  compute::Stage stage;
  std::vector<compute::Axis> axes;  // spatial, then reduce axes
  std::vector<compute::Access> reads;
  std::vector<std::vector<compute::AffineRow>> writes;  // one matrix per output
  compute::OpCounts ops;                                // operations of one point
  std::vector<bool> tested;  // per axis: whether the condition of a select depends on it
  bool constant =
      false;  // reads only constants, through any number of stages, so it runs at compile time
  [[nodiscard]] int num_spatial() const { return static_cast<int>(stage.axes.size()); }
};
using StageInfoPtr = std::shared_ptr<const StageInfo>;

enum class Annotation : uint8_t {
  kNone,
  kVectorize,
  kUnroll,
  kParallel,
  kThread,
  kWarp,
  kLane,
  kMatrix,  // one of the three loops of a matrix statement
};
[[nodiscard]] constexpr bool is_thread_loop(Annotation annotation) {
  return annotation >= Annotation::kThread && annotation <= Annotation::kLane;
}

// A loop, or a former loop that was split or fused. The first loops of a stage are its axes.
struct Loop {
  std::string name;
  bool reduce = false;
  Annotation annotation = Annotation::kNone;
  bool peel = false;
  bool test = false;       // made by a split with Tail::kTest, or fused from such a loop
  bool pad = false;        // made by a split with Tail::kPad or kWhole, or its parent
  int8_t matrix_role = 0;  // a matrix loop runs over rows, columns or terms
  bool whole = false;      // made by a split with Tail::kWhole: keeps its length
  int parent = -1;         // the loop that this one was split from
  int64_t stride = 1;      // its weight in the parent's value
  // Its length, if it is an inner part; 0 for axes, outermost parts and fused loops.
  int64_t length = 0;
  int fused_into = -1;                        // the loop that this one is a digit of
  std::ranges::iota_view<int, int> children;  // parts if it was split, outermost first
  std::vector<int> digits;                    // loops fused into this one, outermost first
};

struct LayoutDim {
  int axis;  // dimension of the buffer
  int64_t divide = 1;
  int64_t modulo = 0;  // 0 for the leftmost digit, which has none
  int64_t pad = 0;     // elements that the dimension has beyond these, which nothing uses
};

enum class AttachKind : uint8_t { kRoot, kAt };
struct Place {
  AttachKind kind = AttachKind::kRoot;
  int stage = -1;  // kAt: the place is inside this loop of that stage
  int loop = -1;
};

struct PrefetchMark {
  ir::BufferPtr buffer;
  int loop;
  int64_t distance;
};

struct StageState {
  StageInfoPtr info;
  std::vector<Loop> loops;
  std::vector<int> order;  // leaves, outermost first
  Place compute;
  Place store;  // equal to `compute` unless store_at was applied
  ir::Scope scope = ir::Scope::kGlobal;
  bool scope_set = false;
  std::vector<LayoutDim> layout;  // empty if dimensions are stored as they are
  int fold_dim = -1;
  int64_t fold_factor = 0;
  int64_t pipeline_depth = 0;  // slots of the ring in shared memory; 0: it does not work ahead
  Transport transport = Transport::kAsync;
  std::vector<PrefetchMark> prefetches;
  ir::VarPtr body_lanes;  // loop of the stage's body that is vectorized, or null
  int sunk = -1;  // this leaf and those inside it are moved inside the loops of the stage's body
  [[nodiscard]] const std::string& name() const { return info->stage.name; }
  [[nodiscard]] const ir::BufferPtr& buffer() const { return info->stage.outputs[0].buffer; }
  // Returns a leaf, or -1 if there is none.
  [[nodiscard]] int find_loop(std::string_view name) const;
  // Returns its position in `order`, or -1 if it is no leaf.
  [[nodiscard]] int find_leaf(int loop) const;
  // Returns the leaves that are loops over threads, outermost first.
  [[nodiscard]] SmallVector<int, 4> thread_loops() const;
};

using StageList = SmallVector<int, 8>;

struct State {
  std::shared_ptr<const std::vector<ir::Param>> params;
  std::vector<StageState> stages;                             // in topological order
  [[nodiscard]] int find_stage(std::string_view name) const;  // -1 if there is none
  [[nodiscard]] const ir::Param* find_param(const ir::BufferPtr& buffer) const;
  [[nodiscard]] bool is_param(const ir::BufferPtr& buffer) const {
    return find_param(buffer) != nullptr;
  }
  // Both return indices of stages: those that write a buffer (several for a concatenation), and
  // those that read it.
  [[nodiscard]] StageList writers(const ir::BufferPtr& buffer) const;
  [[nodiscard]] StageList readers(const ir::BufferPtr& buffer) const;
  // Returns whether stage `inner` is computed, directly or through others, inside a loop of
  // `outer`.
  [[nodiscard]] bool is_inside(int inner, int outer) const;
};

// Returns a State in which every stage is at root and has its axes as loops. The Dag must be
// verified.
[[nodiscard]] State initial_state(const compute::Dag& dag);

// Applies a step. If it is illegal, the error says why and the state is left unspecified.
[[nodiscard]] Status apply_in_place(const Step& step, State& state);
[[nodiscard]] Result<State> apply(const Step& step, State state);
[[nodiscard]] Status check(const Step& step, const State& state);
// Replays a whole schedule. An error names the step.
[[nodiscard]] Result<State> replay(const compute::Dag& dag, const Steps& steps);

}  // namespace hone::schedule
