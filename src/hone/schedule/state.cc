#include "hone/schedule/state.h"

#include <algorithm>

#include "hone/compute/stage_body.h"
#include "hone/schedule/stage_rewrite.h"

namespace hone::schedule {

int StageState::find_loop(std::string_view name) const {
  for (const int leaf : order) {
    if (loops[leaf].name == name) return leaf;
  }
  return -1;
}

int StageState::find_leaf(int loop) const {
  const auto it = std::find(order.begin(), order.end(), loop);
  return it == order.end() ? -1 : static_cast<int>(it - order.begin());
}

int State::find_stage(std::string_view name) const {
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].name() == name) return static_cast<int>(i);
  }
  return -1;
}

SmallVector<int, 4> StageState::thread_loops() const {
  SmallVector<int, 4> found;
  for (const int leaf : order) {
    if (is_thread_loop(loops[leaf].annotation)) found.push_back(leaf);
  }
  return found;
}

const ir::Param* State::find_param(const ir::BufferPtr& buffer) const {
  for (const ir::Param& param : *params) {
    if (param.buffer == buffer) return &param;
  }
  return nullptr;
}

StageList State::writers(const ir::BufferPtr& buffer) const {
  StageList found;
  for (size_t i = 0; i < stages.size(); ++i) {
    for (const compute::Output& output : stages[i].info->stage.outputs) {
      if (output.buffer == buffer) found.push_back(static_cast<int>(i));
    }
  }
  return found;
}

StageList State::readers(const ir::BufferPtr& buffer) const {
  StageList found;
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageInfo& info = *stages[i].info;
    bool reads =
        std::count(info.stage.extern_reads.begin(), info.stage.extern_reads.end(), buffer) > 0;
    for (const compute::Access& access : info.reads) reads |= access.buffer == buffer;
    if (reads) found.push_back(static_cast<int>(i));
  }
  return found;
}

bool State::is_inside(int inner, int outer) const {
  for (const Place* place = &stages[inner].compute; place->kind == AttachKind::kAt;
       place = &stages[place->stage].compute) {
    if (place->stage == outer) return true;
  }
  return false;
}

StageInfoPtr make_stage_info(compute::Stage stage, bool constant) {
  auto info = std::make_shared<StageInfo>();
  info->axes = compute::stage_axes(stage);
  info->constant = constant;
  info->ops = compute::count_ops(stage);
  info->tested = compute::tested_axes(stage);
  if (!stage.is_extern()) {
    info->reads = compute::reads(stage);
    for (const compute::Output& output : stage.outputs) {
      info->writes.push_back(compute::write_rows(stage, output));
    }
  }
  info->stage = std::move(stage);
  return info;
}

StageState make_stage_state(StageInfoPtr info) {
  StageState state;
  for (size_t i = 0; i < info->axes.size(); ++i) {
    Loop loop;
    loop.name = info->axes[i].var->name;
    loop.reduce = static_cast<int>(i) >= info->num_spatial();
    state.loops.push_back(std::move(loop));
    state.order.push_back(static_cast<int>(i));
  }
  if (!info->stage.reduce.empty()) {  // outputs with fewer axes are reduced outside of the others'
    const std::vector<compute::Axis> extra = compute::split_axes(info->stage).extra;
    std::stable_partition(state.order.begin(), state.order.end(), [&](int loop) {
      return std::none_of(extra.begin(), extra.end(), [&](const compute::Axis& axis) {
        return axis.var == info->axes[static_cast<size_t>(loop)].var;
      });
    });
  }
  state.info = std::move(info);
  return state;
}

bool reads_constants_only(const State& state, const compute::Stage& stage) {
  if (stage.is_extern()) return false;
  for (const compute::Access& access : compute::reads(stage)) {
    if (const ir::Param* param = state.find_param(access.buffer)) {
      if (param->role != ir::Role::kConstant) return false;
      continue;
    }
    for (const int writer : state.writers(access.buffer)) {
      if (!state.stages[writer].info->constant) return false;
    }
  }
  for (const compute::Output& output : stage.outputs) {
    if (state.is_param(output.buffer)) return false;
  }
  return true;
}

State initial_state(const compute::Dag& dag) {
  State state;
  state.params = std::make_shared<const std::vector<ir::Param>>(dag.params);
  for (const compute::Stage& stage : dag.stages) {
    const bool constant = reads_constants_only(state, stage);
    state.stages.push_back(make_stage_state(make_stage_info(stage, constant)));
  }
  return state;
}

Result<State> apply(const Step& step, State state) {
  HONE_RETURN_IF_ERROR(apply_in_place(step, state));
  return state;
}

Status check(const Step& step, const State& state) {
  State copy = state;
  return apply_in_place(step, copy);
}

Result<State> replay(const compute::Dag& dag, const Steps& steps) {
  State state = initial_state(dag);
  for (const Step& step : steps) {
    if (Status status = apply_in_place(step, state); !status.ok()) {
      return invalid("{}: {}", to_string(step), status.message());
    }
  }
  return state;
}

}  // namespace hone::schedule
