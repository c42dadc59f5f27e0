#include "hone/schedule/packing_order.h"

#include <algorithm>
namespace hone::schedule {
namespace {

bool is_untouched_packing(const State& state, size_t s) {
  const StageState& stage = state.stages[s];
  const compute::Stage& what = stage.info->stage;
  const bool copies = stage.info->constant && stage.compute.kind == AttachKind::kRoot &&
                      !what.is_extern() && what.reduce.empty() && what.outputs.size() == 1 &&
                      !what.axes.empty() && !stage.layout.empty();
  if (!copies || stage.loops.size() != stage.info->axes.size()) return false;
  const bool plain = std::all_of(stage.loops.begin(), stage.loops.end(), [](const Loop& loop) {
    return loop.annotation == Annotation::kNone;
  });
  const bool holds_others =
      std::any_of(state.stages.begin(), state.stages.end(), [&](const StageState& other) {
        return other.compute.kind == AttachKind::kAt && other.compute.stage == static_cast<int>(s);
      });
  for (size_t i = 0; i < stage.order.size(); ++i) {
    if (stage.order[i] != static_cast<int>(i)) return false;
  }
  return plain && !holds_others;
}

// The axis that alone makes a coordinate of the output; -1 if there is none.
int axis_of(const StageInfo& info, int dimension) {
  const ir::Expr& index = info.stage.outputs[0].write[static_cast<size_t>(dimension)];
  for (size_t a = 0; a < info.stage.axes.size(); ++a) {
    if (index->op == ir::Op::kVar && index->var == info.stage.axes[a].var)
      return static_cast<int>(a);
  }
  return -1;
}

Result<State> order_stage(State state, size_t s) {
  const std::string name = state.stages[s].name();
  const LayoutDim innermost = state.stages[s].layout.back();
  const int axis = axis_of(*state.stages[s].info, innermost.axis);
  const bool splits = axis >= 0 && innermost.divide == 1 && innermost.modulo > 1 &&
                      innermost.modulo < state.stages[s].info->axes[axis].extent;
  if (splits) {
    const std::string loop = state.stages[s].loops[axis].name;
    HONE_RETURN_IF_ERROR(apply_in_place(Split{name, loop, {innermost.modulo}, Tail::kMask}, state));
    Reorder reorder{name, {}};
    for (const int leaf : state.stages[s].order)
      reorder.loops.push_back(state.stages[s].loops[leaf].name);
    const std::string inner = loop + ".1";
    std::erase(reorder.loops, inner);
    reorder.loops.push_back(inner);
    HONE_RETURN_IF_ERROR(apply_in_place(reorder, state));
  }
  const StageState& stage = state.stages[s];
  const std::string outermost = stage.loops[stage.order.front()].name;
  HONE_RETURN_IF_ERROR(apply_in_place(Parallel{name, outermost}, state));
  return state;
}

}  // namespace

void order_packing(State& state) {
  for (size_t s = 0; s < state.stages.size(); ++s) {
    if (!is_untouched_packing(state, s)) continue;
    if (Result<State> ordered = order_stage(state, s); ordered.ok()) state = *std::move(ordered);
  }
}

}  // namespace hone::schedule
