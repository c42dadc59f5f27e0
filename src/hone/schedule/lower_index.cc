#include "hone/schedule/lower_index.h"

#include <algorithm>

#include "hone/ir/visit.h"
#include "hone/schedule/fragment_layout.h"

namespace hone::schedule {

using ir::BufferPtr;
using ir::Expr;
using ir::Stmt;

IndexMap::IndexMap(const State& state, const Bounds& bounds) : state_(state), bounds_(bounds) {
  for (const StageState& stage : state.stages) {
    std::vector<ir::VarPtr>& vars = vars_.emplace_back(stage.loops.size());
    for (const int leaf : stage.order) vars[leaf] = ir::make_var(stage.loops[leaf].name);
  }
  for (size_t s = 0; s < state.stages.size(); ++s) {
    for (size_t o = 0; o < state.stages[s].info->stage.outputs.size(); ++o)
      make_storage(static_cast<int>(s), static_cast<int>(o));
  }
}

void IndexMap::make_storage(int s, int output) {
  const StageState& stage = state_.stages[s];
  const BufferPtr& logical = stage.info->stage.outputs[output].buffer;
  if (state_.is_param(logical) || storage_.count(logical.get()) > 0) return;
  const bool root = stage.compute.kind == AttachKind::kRoot;
  // Legality has found no error in it.
  std::vector<LayoutDim> layout = layout_of(state_, bounds_, s, output).value();
  std::vector<int64_t> shape = laid_out_shape(layout, bounds_.stages[s].storage[output]);
  drop_dimensions(s, shape);
  if (stage.pipeline_depth > 0) shape.insert(shape.begin(), stage.pipeline_depth);
  BufferPtr physical = ir::make_buffer(logical->name, logical->dtype, std::move(shape),
                                       root ? ir::Scope::kGlobal : stage.scope);
  storage_[logical.get()] = {physical, s, output, std::move(layout)};
  if (root) {
    intermediates_.push_back(
        {physical, stage.info->constant ? ir::Role::kPacked : ir::Role::kWorkspace});
  }
}

template <typename T>
void IndexMap::drop_dimensions(int s, std::vector<T>& dims) const {
  const StageState& stage = state_.stages[s];
  if (stage.scope != ir::Scope::kFragment) return;
  const auto threads = stage.thread_loops();
  for (size_t i = threads.size(); i-- > 0;) {
    if (!keeps_loop(s, threads[i])) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// ---- loops and axes ----

bool IndexMap::keeps_loop(int s, int leaf) const {
  const StageState& stage = state_.stages[s];
  const auto runs = [&](int loop) { return bounds_.stages[s].loops[loop].extent > 1; };
  if (stage.loops[leaf].annotation != Annotation::kThread || runs(leaf)) return true;
  const auto threads = stage.thread_loops();
  return threads.back() == leaf && std::none_of(threads.begin(), threads.end(), runs);
}

Expr IndexMap::loop_value(int s, int loop_index) const {
  const Loop& loop = state_.stages[s].loops[loop_index];
  if (loop.fused_into >= 0) {
    const std::vector<int>& digits = state_.stages[s].loops[loop.fused_into].digits;
    Expr digit = ir::floordiv(loop_value(s, loop.fused_into),
                              bounds_.stages[s].loops[loop_index].digit_stride);
    if (digits.front() == loop_index) return digit;
    return ir::floormod(digit, bounds_.stages[s].loops[loop_index].extent);
  }
  if (loop.children.empty()) return ir::variable(vars_[s][loop_index]);
  Expr sum = ir::constant(0);
  for (const int child : loop.children) {
    sum = sum + loop_value(s, child) * state_.stages[s].loops[child].stride;
  }
  return sum;
}

Expr IndexMap::value(const Linear& linear) const {
  Expr sum = ir::constant(linear.constant);
  for (const Term& term : linear) sum = sum + loop_value(term.stage, term.loop) * term.coef;
  return sum;
}

Expr IndexMap::own_value(int s, int axis) const { return value(bounds_.stages[s].axes[axis].own); }

Expr IndexMap::axis_value(int s, int axis) const {
  return value(bounds_.stages[s].axes[axis].min) + own_value(s, axis);
}

ir::VarMap IndexMap::axis_values(int s) const {
  ir::VarMap map;
  const StageInfo& info = *state_.stages[s].info;
  for (size_t a = 0; a < info.axes.size(); ++a)
    map.push_back({info.axes[a].var, axis_value(s, static_cast<int>(a))});
  return map;
}

// ---- buffers ----

BufferPtr IndexMap::physical_buffer(const BufferPtr& logical) const {
  const auto found = storage_.find(logical.get());
  return found == storage_.end() ? logical : found->second.buffer;
}

std::vector<Expr> IndexMap::physical_indices(const BufferPtr& logical,
                                             const std::vector<Expr>& indices, int by) const {
  const auto found = storage_.find(logical.get());
  if (found == storage_.end()) return indices;
  const Storage& at = found->second;
  const StageState& stage = state_.stages[at.stage];
  const StageBounds& bounds = bounds_.stages[at.stage];
  std::vector<Expr> relative;
  for (size_t d = 0; d < indices.size(); ++d) {
    Expr index = indices[d] - value(bounds.storage[at.output][d].min);
    if (stage.fold_dim == static_cast<int>(d)) index = ir::floormod(index, stage.fold_factor);
    relative.push_back(std::move(index));
  }
  std::vector<Expr> physical;
  if (stage.pipeline_depth > 0) {
    const Expr iteration = ir::variable(vars_[stage.compute.stage][stage.compute.loop]);
    physical.push_back(ir::floormod(iteration, stage.pipeline_depth));
  }
  if (at.layout.empty()) {
    drop_dimensions(at.stage, relative);
    physical.insert(physical.end(), relative.begin(), relative.end());
    return physical;
  }
  for (const LayoutDim& dim : at.layout) {
    if (dim.axis == kCopies) {
      physical.push_back(thread_number(by, physical.size()));
      continue;
    }
    Expr digit = ir::floordiv(relative[dim.axis], dim.divide);
    physical.push_back(dim.modulo > 0 ? ir::floormod(digit, dim.modulo) : digit);
  }
  drop_dimensions(at.stage, physical);
  return physical;
}

Expr IndexMap::thread_number(int by, size_t loop) const {
  std::vector<std::pair<int, int>> threads = enclosing_loops(state_, state_.stages[by].compute);
  std::erase_if(threads, [&](const auto& around) {
    return !is_thread_loop(state_.stages[around.first].loops[around.second].annotation);
  });
  for (const int leaf : state_.stages[by].thread_loops()) threads.emplace_back(by, leaf);
  return ir::variable(variable(threads[loop].first, threads[loop].second));
}

Expr IndexMap::place_loads(const Expr& e, int by) const {
  return ir::rewrite(e, [&](const Expr& node) -> Expr {
    if (node->op != ir::Op::kLoad || storage_.count(node->buffer.get()) == 0) return nullptr;
    return ir::load(physical_buffer(node->buffer), physical_indices(node->buffer, node->args, by));
  });
}

// ---- statements ----

Stmt IndexMap::place_stores(const Stmt& s, const ir::VarMap& axes, int by) const {
  return ir::rewrite_stmts(s, [&](const Stmt& store) {
    if (store->kind != ir::StmtKind::kStore) return store;
    std::vector<Expr> indices;
    for (const Expr& index : store->indices) indices.push_back(ir::substitute(index, axes));
    return ir::make_store(physical_buffer(store->buffer),
                          physical_indices(store->buffer, indices, by),
                          place_loads(ir::substitute(store->value, axes), by));
  });
}

Stmt IndexMap::place_body(const Stmt& s, const ir::VarMap& axes, int by) const {
  const auto place = [&](const Expr& e) {
    return e ? place_loads(ir::substitute(e, axes), by) : e;
  };
  std::vector<Stmt> body;
  for (const Stmt& child : s->body) body.push_back(place_body(child, axes, by));
  std::vector<Expr> indices;
  for (const Expr& index : s->indices) indices.push_back(place(index));
  if (s->kind == ir::StmtKind::kStore) {
    return ir::make_store(physical_buffer(s->buffer), physical_indices(s->buffer, indices, by),
                          place(s->value));
  }
  return ir::with_exprs(*s, place(s->min), place(s->extent), place(s->condition),
                        std::move(indices), place(s->value), std::move(body), {});
}

}  // namespace hone::schedule
