#include "hone/schedule/lower.h"

#include <algorithm>
#include <map>

#include "hone/compute/stage_body.h"
#include "hone/ir/fuse_loops.h"
#include "hone/ir/hoist_guards.h"
#include "hone/ir/partition_loops.h"
#include "hone/ir/prefetch_blocks.h"
#include "hone/ir/prefetch_next.h"
#include "hone/ir/roll_loops.h"
#include "hone/ir/share_sums.h"
#include "hone/ir/simplify.h"
#include "hone/ir/sink_loops.h"
#include "hone/schedule/packing_order.h"

namespace hone::schedule {
namespace {

using ir::BufferPtr;
using ir::Expr;
using ir::Op;
using ir::Stmt;

// A test that a point of a stage must pass, and the number of its own loops that must be open.
struct Test {
  Expr condition;
  int level = 0;
  bool update_only = false;  // concerns reduce axes: does not hold back the initial value
};

enum class Mode { kAll, kInit, kUpdate };

class Lowering {
 public:
  Lowering(const State& state, const Bounds& bounds) : state_(state), bounds_(bounds) {}

  Result<ir::Program> run() {
    ir::Program program;
    program.name = "kernel";
    program.params = *state_.params;
    make_variables();
    make_buffers(program);
    add_known_constants(program);
    for (size_t s = 0; s < state_.stages.size(); ++s) {
      if (state_.stages[s].compute.kind != AttachKind::kRoot) continue;
      std::vector<Stmt> body = emit_stage(static_cast<int>(s));
      if (!status_.ok()) return status_;
      const bool prepare = state_.stages[s].info->constant && !writes_param(static_cast<int>(s));
      program.phases.push_back({ir::make_block(std::move(body)), prepare});
    }
    return program;
  }

 private:
  bool writes_param(int s) const {
    const auto& outputs = state_.stages[s].info->stage.outputs;
    return std::any_of(outputs.begin(), outputs.end(), [&](const compute::Output& output) {
      return state_.is_param(output.buffer);
    });
  }

  void make_variables() {
    for (const StageState& stage : state_.stages) {
      std::vector<ir::VarPtr>& vars = vars_.emplace_back(stage.loops.size());
      for (const int leaf : stage.order) vars[leaf] = ir::make_var(stage.loops[leaf].name);
    }
  }

  void make_buffers(ir::Program& program) {
    for (size_t s = 0; s < state_.stages.size(); ++s) {
      const StageState& stage = state_.stages[s];
      for (size_t o = 0; o < stage.info->stage.outputs.size(); ++o) {
        const BufferPtr& logical = stage.info->stage.outputs[o].buffer;
        if (state_.is_param(logical) || storage_.count(logical.get()) > 0) continue;
        const bool root = stage.compute.kind == AttachKind::kRoot;
        BufferPtr physical =
            ir::make_buffer(logical->name, logical->dtype,
                            storage_shape(stage, bounds_.stages[s], static_cast<int>(o)),
                            root ? ir::Scope::kGlobal : stage.scope);
        storage_[logical.get()] = {physical, static_cast<int>(s), static_cast<int>(o)};
        if (root)
          program.params.push_back(
              {physical, stage.info->constant ? ir::Role::kPacked : ir::Role::kWorkspace});
      }
    }
  }

  // Small constants that the Dag carries itself are params too, so that they can be declared.
  void add_known_constants(ir::Program& program) const {
    for (const StageState& stage : state_.stages) {
      for (const compute::Access& access : stage.info->reads) {
        if (access.buffer->values.empty()) continue;
        const bool known =
            std::any_of(program.params.begin(), program.params.end(),
                        [&](const ir::Param& param) { return param.buffer == access.buffer; });
        if (!known) program.params.push_back({access.buffer, ir::Role::kConstant});
      }
    }
  }

  // ---- expressions ----

  Expr loop_expr(int s, int loop_index) const {
    const Loop& loop = state_.stages[s].loops[loop_index];
    if (loop.fused_into >= 0) {
      const std::vector<int>& digits = state_.stages[s].loops[loop.fused_into].digits;
      Expr digit = ir::floordiv(loop_expr(s, loop.fused_into),
                                bounds_.stages[s].loops[loop_index].digit_stride);
      if (digits.front() == loop_index) return digit;
      return ir::floormod(digit, bounds_.stages[s].loops[loop_index].extent);
    }
    if (loop.children.empty()) return ir::variable(vars_[s][loop_index]);
    Expr sum = ir::constant(0);
    for (const int child : loop.children) {
      sum = sum + loop_expr(s, child) * state_.stages[s].loops[child].stride;
    }
    return sum;
  }
  Expr linear_expr(const Linear& linear) const {
    Expr sum = ir::constant(linear.constant);
    for (const Term& term : linear) sum = sum + loop_expr(term.stage, term.loop) * term.coef;
    return sum;
  }
  Expr own_expr(int s, int axis) const { return linear_expr(bounds_.stages[s].axes[axis].own); }
  Expr axis_expr(int s, int axis) const {
    return linear_expr(bounds_.stages[s].axes[axis].min) + own_expr(s, axis);
  }

  // Logical coordinates of a buffer to the place where its storage keeps them.
  std::vector<Expr> physical_indices(const BufferPtr& logical,
                                     const std::vector<Expr>& indices) const {
    const auto found = storage_.find(logical.get());
    if (found == storage_.end()) return indices;
    const Storage& at = found->second;
    const StageState& stage = state_.stages[at.stage];
    const StageBounds& bounds = bounds_.stages[at.stage];
    std::vector<Expr> relative;
    for (size_t d = 0; d < indices.size(); ++d) {
      Expr index = indices[d] - linear_expr(bounds.storage[at.output][d].min);
      if (stage.fold_dim == static_cast<int>(d)) index = ir::floormod(index, stage.fold_factor);
      relative.push_back(std::move(index));
    }
    if (stage.layout.empty() || at.output > 0) return relative;
    std::vector<Expr> physical;
    for (const LayoutDim& dim : stage.layout) {
      Expr digit = ir::floordiv(relative[dim.axis], dim.divide);
      physical.push_back(dim.modulo > 0 ? ir::floormod(digit, dim.modulo) : digit);
    }
    return physical;
  }
  BufferPtr physical_buffer(const BufferPtr& logical) const {
    const auto found = storage_.find(logical.get());
    return found == storage_.end() ? logical : found->second.buffer;
  }

  Expr place_loads(const Expr& e) const {
    return ir::rewrite(e, [&](const Expr& node) -> Expr {
      if (node->op != Op::kLoad || storage_.count(node->buffer.get()) == 0) return nullptr;
      return ir::load(physical_buffer(node->buffer), physical_indices(node->buffer, node->args));
    });
  }
  ir::VarMap axis_map(int s) const {
    ir::VarMap map;
    const StageInfo& info = *state_.stages[s].info;
    for (size_t a = 0; a < info.axes.size(); ++a) {
      map.push_back({info.axes[a].var, axis_expr(s, static_cast<int>(a))});
    }
    return map;
  }

  // Rewrites stores made for logical axes and buffers to loops and storage.
  Stmt place_stores(const Stmt& s, const ir::VarMap& map) const {
    std::vector<Stmt> body;
    for (const Stmt& child : s->body) body.push_back(place_stores(child, map));
    if (s->kind != ir::StmtKind::kStore)
      return s->body.empty() ? s : ir::with_body(*s, std::move(body));
    std::vector<Expr> indices;
    for (const Expr& index : s->indices) indices.push_back(ir::substitute(index, map));
    return ir::make_store(physical_buffer(s->buffer), physical_indices(s->buffer, indices),
                          place_loads(ir::substitute(s->value, map)));
  }

  // The same for the body of an extern stage, whose loops and buffers are its own.
  Stmt place_body(const Stmt& s, const ir::VarMap& map) const {
    const auto place = [&](const Expr& e) { return e ? place_loads(ir::substitute(e, map)) : e; };
    std::vector<Stmt> body;
    for (const Stmt& child : s->body) body.push_back(place_body(child, map));
    std::vector<Expr> indices;
    for (const Expr& index : s->indices) indices.push_back(place(index));
    if (s->kind == ir::StmtKind::kStore) {
      return ir::make_store(physical_buffer(s->buffer), physical_indices(s->buffer, indices),
                            place(s->value));
    }
    return ir::with_exprs(*s, place(s->min), place(s->extent), place(s->condition),
                          std::move(indices), place(s->value), std::move(body));
  }

  // ---- tests ----

  // How many of the stage's own loops a linear form's terms need.
  int level_of(int s, const Linear& linear) const {
    int level = 0;
    for (const Term& term : linear) {
      if (term.stage == s)
        level = std::max(level, bounds_.stages[s].loops[term.loop].last_leaf + 1);
    }
    return level;
  }

  void where_tests(int s, const Expr& condition, bool update_only, std::vector<Test>& tests) const {
    if (!condition) return;
    const StageInfo& info = *state_.stages[s].info;
    int level = 0;
    ir::visit(condition, [&](const Expr& e) {
      for (size_t a = 0; a < info.axes.size(); ++a) {
        if (e->op == Op::kVar && e->var == info.axes[a].var) {
          level = std::max(level, level_of(s, bounds_.stages[s].axes[a].own));
        }
      }
    });
    tests.push_back({ir::substitute(condition, axis_map(s)), level, update_only});
  }

  std::vector<Test> tests_of(int s) const {
    std::vector<Test> tests;
    const StageInfo& info = *state_.stages[s].info;
    const StageBounds& bounds = bounds_.stages[s];
    for (size_t a = 0; a < info.axes.size(); ++a) {
      const AxisBounds& axis = bounds.axes[a];
      const int level = level_of(s, axis.own);
      const bool reduce = static_cast<int>(a) >= info.num_spatial();
      const Expr value = axis_expr(s, static_cast<int>(a));
      if (axis.guard_low) tests.push_back({ir::less_equal(ir::constant(0), value), level, reduce});
      if (axis.guard_high)
        tests.push_back({ir::less(value, ir::constant(info.axes[a].extent)), level, reduce});
      if (axis.guard_region) {
        tests.push_back(
            {ir::less(own_expr(s, static_cast<int>(a)), ir::constant(axis.extent)), level, reduce});
      }
    }
    for (const int loop : bounds.overlapping) {
      tests.push_back({ir::less(loop_expr(s, loop), ir::constant(bounds.loops[loop].extent)),
                       bounds.loops[loop].last_leaf + 1, state_.stages[s].loops[loop].reduce});
    }
    const compute::WhereSplit where = compute::split_where(info.stage);
    where_tests(s, where.point, false, tests);
    where_tests(s, where.update, true, tests);
    if (bounds.slides) {
      const AxisBounds& axis = bounds.axes[bounds.slide_axis];
      const StageState& stage = state_.stages[s];
      const Expr first = ir::make(
          Op::kEq, {ir::variable(vars_[stage.compute.stage][stage.compute.loop]), ir::constant(0)});
      const Expr fresh = ir::less_equal(ir::constant(axis.extent - bounds.slide_stride),
                                        own_expr(s, bounds.slide_axis));
      tests.push_back({ir::make(Op::kOr, {first, fresh}), level_of(s, axis.own), false});
    }
    return tests;
  }

  // ---- statements ----

  struct Emission {
    int s;
    std::vector<Test> tests;
    int first_reduce;  // position of the outermost reduce loop, or the number of loops
    int wide;          // loops from here on belong to axes that only some outputs have
  };

  std::vector<Stmt> emit_stage(int s) {
    const StageState& stage = state_.stages[s];
    const int loops = static_cast<int>(stage.order.size());
    Emission emission{s, tests_of(s), loops, loops};
    for (int i = loops; i-- > 0;) {
      if (stage.loops[stage.order[i]].reduce) emission.first_reduce = i;
    }
    const std::vector<bool> extra = loops_of_extra_axes(s);
    for (size_t i = 0; i < extra.size(); ++i) {
      if (extra[i]) emission.wide = std::min(emission.wide, bounds_.stages[s].loops[i].last_leaf);
    }
    for (int i = emission.wide; i < loops; ++i) {
      const int leaf = stage.order[i];
      const Loop& loop = stage.loops[leaf];
      if (bounds_.stages[s].loops[leaf].extent > 1 && (loop.reduce || !extra[leaf])) {
        fail(invalid("{}: loop {} must lie outside of the axes that not all outputs have",
                     stage.name(), loop.name));
      }
    }
    return emit_level(emission, 0, Mode::kAll);
  }

  // Per loop of a stage: whether it runs over an axis that not all outputs have.
  std::vector<bool> loops_of_extra_axes(int s) const {
    const StageInfo& info = *state_.stages[s].info;
    std::vector<bool> extra(state_.stages[s].loops.size(), false);
    for (const compute::Axis& axis : compute::split_axes(info.stage).extra) {
      for (size_t a = 0; a < info.axes.size(); ++a) {
        if (info.axes[a].var != axis.var) continue;
        for (const Term& term : bounds_.stages[s].axes[a].own) extra[term.loop] = true;
      }
    }
    return extra;
  }

  void fail(Status why) {
    if (status_.ok()) status_ = std::move(why);
  }

  std::vector<Stmt> emit_level(const Emission& e, int level, Mode mode) {
    Expr condition;
    for (const Test& test : e.tests) {
      if (test.level != level || (test.update_only && mode == Mode::kInit)) continue;
      condition = condition ? ir::logical_and(condition, test.condition) : test.condition;
    }
    std::vector<Stmt> body;
    if (mode == Mode::kAll && level == e.first_reduce &&
        !state_.stages[e.s].info->stage.reduce.empty()) {
      body = emit_inside(e, level, Mode::kInit);
      for (Stmt& s : emit_inside(e, level, Mode::kUpdate)) body.push_back(std::move(s));
    } else {
      body = emit_inside(e, level, mode);
    }
    // What is computed in the loop just opened is only needed where the tests hold.
    if (level > 0 && mode != Mode::kInit) {
      body = with_attached(e.s, state_.stages[e.s].order[level - 1], std::move(body));
    }
    if (condition) body = {ir::make_if(condition, std::move(body))};
    return body;
  }

  std::vector<Stmt> emit_inside(const Emission& e, int level, Mode mode) {
    const StageState& stage = state_.stages[e.s];
    if (level == std::min(e.wide, static_cast<int>(stage.order.size())))
      return emit_point(e, level, mode);
    const int leaf = stage.order[level];
    if (leaf == stage.sunk) return emit_sunk(e, level);
    const Loop& loop = stage.loops[leaf];
    if (mode == Mode::kInit && loop.reduce) return emit_level(e, level + 1, mode);
    std::vector<Stmt> body = emit_level(e, level + 1, mode);
    if (mode != Mode::kInit) add_prefetches(e.s, leaf, body);
    return {make_loop(e.s, leaf, std::move(body))};
  }

  Stmt make_loop(int s, int leaf, std::vector<Stmt> body) const {
    const Loop& loop = state_.stages[s].loops[leaf];
    ir::ForKind kind = ir::ForKind::kSerial;
    if (loop.annotation == Annotation::kVectorize) kind = ir::ForKind::kVectorized;
    if (loop.annotation == Annotation::kUnroll) kind = ir::ForKind::kUnrolled;
    if (loop.annotation == Annotation::kParallel) kind = ir::ForKind::kParallel;
    return ir::make_for(vars_[s][leaf], ir::constant(0), extent_of(s, leaf), kind, std::move(body),
                        loop.peel);
  }

  Expr extent_of(int s, int leaf) const {
    const int64_t whole = bounds_.stages[s].loops[leaf].extent;
    for (const AxisEnd& end : bounds_.stages[s].ends) {
      if (end.loop != leaf) continue;
      const Expr chunks =
          ir::floordiv(linear_expr(end.limit) + (end.step - 1), end.step) * (end.step / end.chunk);
      if (state_.stages[s].loops[leaf].annotation != Annotation::kVectorize)
        return ir::min(ir::constant(whole), chunks);
      return ir::min(ir::constant(whole / end.chunk), chunks) * end.chunk;
    }
    return ir::constant(whole);
  }

  // The loops from `level` on, with their tests, around a body that attaches nothing.
  std::vector<Stmt> inner_loops(const Emission& e, int level, std::vector<Stmt> body) const {
    const std::vector<int>& order = state_.stages[e.s].order;
    for (int i = static_cast<int>(order.size()); i-- > level;) {
      Expr condition;
      for (const Test& test : e.tests) {
        if (test.level != i + 1) continue;
        condition = condition ? ir::logical_and(condition, test.condition) : test.condition;
      }
      if (condition) body = {ir::make_if(condition, std::move(body))};
      body = {make_loop(e.s, order[i], std::move(body))};
    }
    return body;
  }

  std::vector<Stmt> extern_body(int s) const {
    const ir::VarMap map = axis_map(s);
    std::vector<Stmt> body;
    for (const Stmt& stmt : state_.stages[s].info->stage.body)
      body.push_back(place_body(stmt, map));
    return body;
  }

  // The loops from `level` on inside those of the body.
  std::vector<Stmt> emit_sunk(const Emission& e, int level) const {
    const std::vector<int>& order = state_.stages[e.s].order;
    std::vector<ir::SunkLoop> loops;
    for (size_t i = static_cast<size_t>(level); i < order.size(); ++i) {
      loops.push_back({vars_[e.s][order[i]], bounds_.stages[e.s].loops[order[i]].extent});
    }
    return ir::sink_loops(extern_body(e.s), loops, [&](std::vector<Stmt> body) {
      return inner_loops(e, level, std::move(body));
    });
  }

  std::vector<Stmt> emit_point(const Emission& e, int level, Mode mode) {
    const compute::Stage& what = state_.stages[e.s].info->stage;
    if (what.is_extern()) return extern_body(e.s);
    const ir::VarMap map = axis_map(e.s);
    const auto extra_loops = [&](const compute::Output&, std::vector<Stmt> body) {
      return inner_loops(e, level, std::move(body));
    };
    std::vector<Stmt> stores;
    if (mode == Mode::kInit) {
      const auto extra = compute::split_axes(what).extra;
      for (const compute::Output& output : what.outputs) {
        const bool is_wide = std::any_of(
            extra.begin(), extra.end(),
            [&](const compute::Axis& axis) { return compute::uses_axis(output, axis); });
        std::vector<Stmt> store = {ir::make_store(output.buffer, output.write, output.identity)};
        if (is_wide) store = extra_loops(output, std::move(store));
        for (Stmt& s : store) stores.push_back(std::move(s));
      }
    } else {
      stores = compute::point_stores(what, extra_loops);
    }
    for (Stmt& s : stores) s = place_stores(s, map);
    return stores;
  }

  // Around the body of a loop: what is computed there first, and the storage that lives there.
  std::vector<Stmt> with_attached(int s, int leaf, std::vector<Stmt> body) {
    const auto is_here = [&](const Place& place) {
      return place.kind == AttachKind::kAt && place.stage == s && place.loop == leaf;
    };
    std::vector<Stmt> all;
    for (size_t p = 0; p < state_.stages.size(); ++p) {
      if (!is_here(state_.stages[p].compute)) continue;
      for (Stmt& stmt : emit_stage(static_cast<int>(p))) all.push_back(std::move(stmt));
    }
    for (Stmt& stmt : body) all.push_back(std::move(stmt));
    for (size_t p = state_.stages.size(); p-- > 0;) {
      if (!is_here(state_.stages[p].store)) continue;
      const auto& outputs = state_.stages[p].info->stage.outputs;
      for (size_t o = outputs.size(); o-- > 0;) {
        all = {ir::make_alloc(physical_buffer(outputs[o].buffer), std::move(all))};
      }
    }
    return all;
  }

  void add_prefetches(int s, int leaf, std::vector<Stmt>& body) const {
    const StageState& stage = state_.stages[s];
    for (const PrefetchMark& mark : stage.prefetches) {
      if (mark.loop != leaf) continue;
      // What is made inside the tile is near already.
      const auto storage = storage_.find(mark.buffer.get());
      if (storage != storage_.end() && storage->second.buffer->scope != ir::Scope::kGlobal)
        continue;
      ir::VarMap ahead = {{vars_[s][leaf], ir::variable(vars_[s][leaf]) + mark.distance}};
      for (int i = stage.find_leaf(leaf) + 1; i < static_cast<int>(stage.order.size()); ++i) {
        ahead.push_back({vars_[s][stage.order[i]], ir::constant(0)});
      }
      for (const compute::Output& output : stage.info->stage.outputs) {
        ir::visit(output.value, [&](const Expr& e) {
          if (e->op != Op::kLoad || e->buffer != mark.buffer) return;
          std::vector<Expr> indices;
          for (const Expr& index : e->args) indices.push_back(ir::substitute(index, axis_map(s)));
          indices = physical_indices(mark.buffer, indices);
          for (Expr& index : indices) index = ir::substitute(index, ahead);
          body.insert(body.begin(),
                      ir::make_prefetch(physical_buffer(mark.buffer), std::move(indices)));
        });
      }
    }
  }

  struct Storage {
    BufferPtr buffer;
    int stage;
    int output;
  };

  const State& state_;
  const Bounds& bounds_;
  std::vector<std::vector<ir::VarPtr>> vars_;
  std::map<const ir::Buffer*, Storage> storage_;  // looked up only, never iterated
  Status status_;
};

}  // namespace

Result<ir::Program> lower_raw(const State& state, const Bounds& bounds) {
  return Lowering(state, bounds).run();
}

Result<ir::Program> lower(const State& state, const Bounds& bounds) {
  HONE_ASSIGN_OR_RETURN(ir::Program program, lower_raw(state, bounds));
  program = ir::simplify(std::move(program));
  program = ir::hoist_guards(std::move(program));
  program = ir::fuse_loops(std::move(program));
  program = ir::prefetch_blocks(std::move(program));
  program = ir::prefetch_next(std::move(program));
  program = ir::partition_loops(std::move(program));
  program = ir::share_sums(std::move(program));
  program = ir::roll_loops(std::move(program));  // last: what is left is as long as it will be
  return ir::simplify(std::move(program));
}

Result<ir::Program> lower(const compute::Dag& dag, const Steps& steps) {
  HONE_ASSIGN_OR_RETURN(State state, replay(dag, steps));
  order_packing(state);
  HONE_ASSIGN_OR_RETURN(const Bounds bounds, infer_bounds(state));
  return lower(state, bounds);
}

}  // namespace hone::schedule
