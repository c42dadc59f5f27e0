#include "hone/compute/affine.h"
#include "hone/compute/stage_body.h"

namespace hone::compute {
namespace {

using ir::Stmt;

std::vector<Stmt> loops(const std::vector<Axis>& axes, std::vector<Stmt> body) {
  for (size_t i = axes.size(); i-- > 0;) {
    body = {ir::make_for(axes[i].var, ir::constant(0), ir::constant(axes[i].extent),
                         ir::ForKind::kSerial, std::move(body))};
  }
  return body;
}

Stmt naive_stage(const Stage& stage) {
  if (stage.is_extern()) {
    return ir::make_block(loops(stage.axes, stage.body));
  }
  const AxisSplit split = split_axes(stage);
  const auto extra_loops = [&](const Output& output, std::vector<Stmt> body) {
    std::vector<Axis> used;
    for (const Axis& axis : split.extra) {
      if (uses_axis(output, axis)) used.push_back(axis);
    }
    return loops(used, std::move(body));
  };
  const WhereSplit where = split_where(stage);
  std::vector<Stmt> update = point_stores(stage, extra_loops);
  if (where.update) update = {ir::make_if(where.update, std::move(update))};
  std::vector<Stmt> body;
  for (const Output& output : stage.outputs) {
    if (!output.identity) continue;
    for (Stmt& s :
         extra_loops(output, {ir::make_store(output.buffer, output.write, output.identity)})) {
      body.push_back(std::move(s));
    }
  }
  for (Stmt& s : loops(stage.reduce, std::move(update))) body.push_back(std::move(s));
  if (where.point) body = {ir::make_if(where.point, std::move(body))};
  return ir::make_block(loops(split.common, std::move(body)));
}

}  // namespace

ir::Program naive_program(const Dag& dag) {
  ir::Program program;
  program.name = "naive";
  program.params = dag.params;
  for (const Stage& stage : dag.stages) {
    for (const Output& output : stage.outputs) {
      bool known = false;
      for (const ir::Param& param : program.params) known |= param.buffer == output.buffer;
      if (!known) program.params.push_back({output.buffer, ir::Role::kWorkspace});
    }
    program.phases.push_back({naive_stage(stage), false});
  }
  for (const Stage& stage : dag.stages) {
    for (const Access& access : stage.is_extern() ? std::vector<Access>{} : reads(stage)) {
      bool known = access.buffer->values.empty();
      for (const ir::Param& param : program.params) known |= param.buffer == access.buffer;
      if (!known) program.params.push_back({access.buffer, ir::Role::kConstant});
    }
  }
  return program;
}

}  // namespace hone::compute
