#include "hone/schedule/stage_rewrite.h"

#include <algorithm>

#include "hone/compute/stage_body.h"
#include "hone/schedule/rfactor.h"
#include "hone/schedule/scan_parts.h"

namespace hone::schedule {
namespace {

using ir::Expr;
using ir::Op;

// Stage indices in places follow an insertion (delta = 1) or removal (delta = -1) at `at`.
void shift_places(StageState& stage, int at, int delta) {
  for (Place* place : {&stage.compute, &stage.store}) {
    if (place->kind == AttachKind::kAt && place->stage >= at) place->stage += delta;
  }
}
void shift_places(State& state, int at, int delta) {
  for (StageState& stage : state.stages) shift_places(stage, at, delta);
}

// The new stage's own places are given as before the insertion.
void insert_stage(State& state, int at, StageState stage) {
  shift_places(state, at, 1);
  shift_places(stage, at, 1);
  state.stages.insert(state.stages.begin() + at, std::move(stage));
}

// Reads of `from` become what `make` returns for their indices.
template <typename F>
compute::Stage redirect_reads(compute::Stage stage, const ir::BufferPtr& from, const F& make) {
  for (compute::Output& output : stage.outputs) {
    output.value = ir::rewrite(output.value, [&](const Expr& e) {
      return e->op == Op::kLoad && e->buffer == from ? make(e->args) : nullptr;
    });
  }
  return stage;
}

// A stage whose body changed but whose axes did not keeps its loops.
void replace_info(State& state, int index, compute::Stage stage) {
  const bool constant = reads_constants_only(state, stage);
  state.stages[index].info = make_stage_info(std::move(stage), constant);
}

// If every write coordinate is one axis plus a constant, each axis in one place: the axis of each
// dimension; else nothing.
std::optional<std::vector<int>> permutation(const StageInfo& info) {
  std::vector<int> axes;
  for (const compute::AffineRow& row : info.writes[0]) {
    int found = -1;
    for (size_t i = 0; i < row.coef.size(); ++i) {
      if (row.coef[i] == 0) continue;
      if (row.coef[i] != 1 || found >= 0) return std::nullopt;
      found = static_cast<int>(i);
    }
    if (found >= 0 && std::count(axes.begin(), axes.end(), found) > 0) return std::nullopt;
    axes.push_back(found);
  }
  for (int i = 0; i < info.num_spatial(); ++i) {
    if (info.axes[i].extent > 1 && std::count(axes.begin(), axes.end(), i) == 0)
      return std::nullopt;
  }
  return axes;
}

compute::Axis renamed(const compute::Axis& axis) {
  return compute::make_axis(axis.var->name, axis.extent);
}

// A stage keeps a result in these buffers, at this place, while it is computed.
struct Accumulator {
  ir::BufferPtr buffer, other;
  std::vector<Expr> at;
};

// Makes buffers of the axes that the result moves with. The only result of a stage has all axes,
// and the name of the stage that computes it.
Accumulator make_accumulator(const compute::Stage& stage, const compute::Output& output,
                             const std::string& acc_name) {
  Accumulator made;
  const bool alone = stage.outputs.size() == 1;
  std::vector<int64_t> shape;
  for (const compute::Axis& axis : stage.axes) {
    if (!alone && !compute::uses_axis(output, axis)) continue;
    shape.push_back(axis.extent);
    made.at.push_back(ir::variable(axis.var));
  }
  const std::string name = alone ? acc_name : output.buffer->name + ".acc";
  made.buffer = ir::make_buffer(name, output.buffer->dtype, shape);
  if (output.other) made.other = ir::make_buffer(name + ".other", output.buffer->dtype, shape);
  return made;
}

}  // namespace

std::string unique_name(const State& state, const std::string& name) {
  std::string candidate = name;
  for (int i = 1; state.find_stage(candidate) >= 0; ++i) candidate = fmt::format("{}.{}", name, i);
  return candidate;
}

void insert_producer(State& state, int reader, compute::Stage producer, compute::Stage changed) {
  const bool constant = reads_constants_only(state, producer);
  StageState made = make_stage_state(make_stage_info(std::move(producer), constant));
  // An operand that is computed inside a loop is read there.
  for (const compute::Access& read : made.info->reads) {
    for (const int writer : state.writers(read.buffer)) {
      made.compute = made.store = state.stages[writer].compute;
      if (made.compute.kind == AttachKind::kAt) made.scope = ir::Scope::kThread;
    }
  }
  insert_stage(state, reader, std::move(made));
  replace_info(state, reader + 1, std::move(changed));
}

bool untouched(const State& state, int index) {
  const StageState& stage = state.stages[index];
  if (stage.loops.size() != stage.info->axes.size()) return false;
  if (stage.compute.kind != AttachKind::kRoot) return false;
  return std::none_of(state.stages.begin(), state.stages.end(), [&](const StageState& other) {
    return other.compute.stage == index || other.store.stage == index;
  });
}

void redirect_buffer(State& state, int stage, const ir::BufferPtr& from, const ir::BufferPtr& to) {
  replace_info(state, stage,
               redirect_reads(state.stages[stage].info->stage, from,
                              [&](const std::vector<Expr>& at) { return ir::load(to, at); }));
}

void replace_stage(State& state, int index, std::vector<compute::Stage> stages) {
  const int count = static_cast<int>(stages.size());
  const auto make = [&](compute::Stage stage) {
    const bool constant = reads_constants_only(state, stage);
    return make_stage_state(make_stage_info(std::move(stage), constant));
  };
  for (int i = 0; i + 1 < count; ++i) insert_stage(state, index + i, make(std::move(stages[i])));
  state.stages[index + count - 1] = make(std::move(stages[count - 1]));
}

Status inline_stage(const Inline& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  const StageInfoPtr info = state.stages[index].info;
  const compute::Stage& stage = info->stage;
  if (stage.is_extern()) return invalid("{} is an extern stage", step.stage);
  if (!stage.reduce.empty()) return invalid("{} is a reduction", step.stage);
  if (stage.where || stage.outputs.size() != 1)
    return invalid("{} is not computed everywhere", step.stage);
  const compute::Output& output = stage.outputs[0];
  if (state.is_param(output.buffer)) return invalid("{} writes an output of the task", step.stage);
  if (state.writers(output.buffer).size() != 1)
    return invalid("{} is one of several writers", step.stage);
  const auto axes = permutation(*info);
  if (!axes) return invalid("{} writes at a map that is no permutation of its axes", step.stage);
  for (size_t i = 0; i < state.stages.size(); ++i) {
    if (state.stages[i].compute.stage == index || state.stages[i].store.stage == index) {
      return invalid("{} holds the computation of {}", step.stage, state.stages[i].name());
    }
  }
  for (const int reader : state.readers(output.buffer)) {
    if (state.stages[reader].info->stage.is_extern())
      return invalid("{} is read by an extern stage", step.stage);
    compute::Stage changed = redirect_reads(
        state.stages[reader].info->stage, output.buffer, [&](const std::vector<Expr>& indices) {
          ir::VarMap map;
          for (size_t i = 0; i < stage.axes.size(); ++i)
            map.push_back({stage.axes[i].var, ir::constant(0)});
          for (size_t d = 0; d < indices.size(); ++d) {
            if ((*axes)[d] < 0) continue;
            map[(*axes)[d]].second = indices[d] - info->writes[0][d].constant;
          }
          return ir::substitute(output.value, map);
        });
    replace_info(state, reader, std::move(changed));
  }
  state.stages.erase(state.stages.begin() + index);
  shift_places(state, index, -1);
  return ok_status();
}

Status cache_read(const CacheRead& step, State& state) {
  const int reader = state.find_stage(step.reader);
  if (reader < 0) return invalid("no stage {}", step.reader);
  const StageInfo& info = *state.stages[reader].info;
  const compute::Access* access = nullptr;
  for (const compute::Access& candidate : info.reads) {
    if (candidate.buffer->name == step.buffer) access = &candidate;
  }
  if (!access) return invalid("{} does not read {}", step.reader, step.buffer);
  const ir::BufferPtr from = access->buffer;

  compute::Stage copy;
  copy.name = unique_name(state, step.buffer + ".cache");
  std::vector<std::string> used;
  for (size_t d = 0; d < from->shape.size(); ++d) {
    const compute::AffineRow& row = access->index[d];
    std::string name = fmt::format("d{}", d);
    const int terms = static_cast<int>(row.coef.size()) -
                      static_cast<int>(std::count(row.coef.begin(), row.coef.end(), 0));
    for (size_t i = 0; i < row.coef.size() && terms == 1; ++i) {
      const std::string& role = info.axes[i].var->name;
      if (row.coef[i] == 1 && std::count(used.begin(), used.end(), role) == 0) name = role;
    }
    used.push_back(name);
    copy.axes.push_back(compute::make_axis(name, from->shape[d]));
  }
  const ir::BufferPtr to = ir::make_buffer(copy.name, from->dtype, from->shape);
  const std::vector<Expr> indices = compute::variables(copy.axes);
  copy.outputs.push_back({to, indices, ir::load(from, indices), nullptr, nullptr, nullptr});
  insert_producer(state, reader, std::move(copy),
                  redirect_reads(info.stage, from,
                                 [&](const std::vector<Expr>& at) { return ir::load(to, at); }));
  return ok_status();
}

Status cache_write(const CacheWrite& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  if (!untouched(state, index)) return invalid("{} is scheduled already", step.stage);
  const compute::Stage& stage = state.stages[index].info->stage;
  if (stage.is_extern()) return invalid("{} is an extern stage", step.stage);
  const size_t results = stage.outputs.size();
  compute::Stage acc = stage, copy;
  acc.name = unique_name(state, stage.name + ".acc");
  copy.name = stage.name;
  copy.op = stage.op;
  ir::VarMap map;
  for (const compute::Axis& axis : stage.axes) {
    copy.axes.push_back(renamed(axis));
    map.push_back({axis.var, ir::variable(copy.axes.back().var)});
  }
  std::vector<Accumulator> kept;
  for (const compute::Output& output : stage.outputs)
    kept.push_back(make_accumulator(stage, output, acc.name));
  const auto move_to_acc = [&](const Expr& e) -> Expr {
    if (!e) return e;
    return ir::rewrite(e, [&](const Expr& node) -> Expr {
      for (size_t o = 0; node->op == Op::kLoad && o < results; ++o) {
        if (node->buffer == stage.outputs[o].buffer) return ir::load(kept[o].buffer, kept[o].at);
        if (kept[o].other && node->buffer == stage.outputs[o].other)
          return ir::load(kept[o].other, kept[o].at);
      }
      return nullptr;
    });
  };
  for (size_t o = 0; o < results; ++o) {
    const compute::Output& output = stage.outputs[o];
    acc.outputs[o] = {kept[o].buffer,
                      kept[o].at,
                      move_to_acc(output.value),
                      output.identity,
                      move_to_acc(output.merge),
                      kept[o].other};
    std::vector<Expr> write, read;
    for (const Expr& index : output.write) write.push_back(ir::substitute(index, map));
    for (const Expr& index : kept[o].at) read.push_back(ir::substitute(index, map));
    copy.outputs.push_back({output.buffer, std::move(write),
                            ir::load(kept[o].buffer, std::move(read)), nullptr, nullptr, nullptr});
  }
  if (stage.where) {
    const Expr point = compute::split_where(stage).point;
    if (point) copy.where = ir::substitute(point, map);
  }
  const bool constant = state.stages[index].info->constant;
  state.stages[index] = make_stage_state(make_stage_info(std::move(copy), constant));
  insert_stage(state, index, make_stage_state(make_stage_info(std::move(acc), constant)));
  return ok_status();
}

Status narrow(const Narrow& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  if (step.dtype != DType::kBF16)
    return invalid("{} as {}, expected bf16", step.stage, dtype_name(step.dtype));
  const StageInfo& info = *state.stages[index].info;
  const compute::Stage& stage = info.stage;
  if (!info.constant) return invalid("{} does not run at compile time", step.stage);
  if (stage.is_extern() || !stage.reduce.empty() || stage.outputs.size() != 1)
    return invalid("{} is not a value per point", step.stage);
  const ir::BufferPtr wide = stage.outputs[0].buffer;
  if (wide->dtype != DType::kF32)
    return invalid("{} is of {}, expected f32", step.stage, dtype_name(wide->dtype));
  if (state.is_param(wide) || state.writers(wide).size() != 1)
    return invalid("{} is not the only one that writes an intermediate result", step.stage);
  for (const int reader : state.readers(wide)) {
    if (state.stages[reader].info->stage.is_extern())
      return invalid("{} is read by an extern stage", step.stage);
  }
  auto buffer = std::make_shared<ir::Buffer>(*wide);
  buffer->dtype = step.dtype;
  const ir::BufferPtr narrow = buffer;
  for (const int reader : state.readers(wide)) {
    replace_info(
        state, reader,
        redirect_reads(state.stages[reader].info->stage, wide, [&](const std::vector<Expr>& at) {
          return ir::cast(DType::kF32, ir::load(narrow, at));
        }));
  }
  compute::Stage rounded = stage;
  rounded.outputs[0].buffer = narrow;
  rounded.outputs[0].value = ir::cast(step.dtype, stage.outputs[0].value);
  replace_info(state, index, std::move(rounded));
  return ok_status();
}

Status rfactor(const RFactor& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  if (!untouched(state, index)) return invalid("{} is scheduled already", step.stage);
  const compute::Stage& stage = state.stages[index].info->stage;
  if (stage.is_extern()) {
    HONE_ASSIGN_OR_RETURN(std::vector<compute::Stage> parts,
                          scan_in_parts(stage, step, unique_name(state, stage.name + ".rf")));
    replace_stage(state, index, std::move(parts));
    return ok_status();
  }
  HONE_ASSIGN_OR_RETURN(Factored made,
                        factor_reduction(stage, step, unique_name(state, stage.name + ".rf")));
  const bool constant = state.stages[index].info->constant;
  state.stages[index] = make_stage_state(make_stage_info(std::move(made.merged), constant));
  insert_stage(state, index, make_stage_state(make_stage_info(std::move(made.part), constant)));
  return ok_status();
}

}  // namespace hone::schedule
