#include "hone/schedule/lower.h"

#include <algorithm>

#include "hone/compute/stage_body.h"
#include "hone/ir/linear.h"
#include "hone/ir/sink_loops.h"
#include "hone/ir/visit.h"
#include "hone/schedule/lower_guards.h"
#include "hone/schedule/packing_order.h"
#include "hone/schedule/pipeline.h"
#include "hone/schedule/tensorize.h"
#include "hone/schedule/trip_limits.h"

namespace hone::schedule {
namespace {

using ir::Expr;
using ir::Stmt;

enum class Mode { kAll, kInit, kUpdate };

class Lowering {
 public:
  Lowering(const State& state, const Bounds& bounds)
      : state_(state),
        bounds_(bounds),
        index_(state, bounds),
        has_pipelines_(std::any_of(state.stages.begin(), state.stages.end(),
                                   [](const auto& s) { return s.pipeline_depth > 0; })) {}

  Result<ir::Program> run() {
    ir::Program program;
    program.name = "kernel";
    program.params = *state_.params;
    const std::vector<ir::Param>& more = index_.intermediates();
    program.params.insert(program.params.end(), more.begin(), more.end());
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

  struct Emission {
    int s;
    StageGuards guards;
    int first_reduce;               // position of the outermost reduce loop, or the number of loops
    int wide;                       // loops from here on belong to axes that only some outputs have
    std::vector<int> threads = {};  // loops over threads of such axes
  };

  std::vector<Stmt> emit_stage(int s) {
    const StageState& stage = state_.stages[s];
    const int loops = static_cast<int>(stage.order.size());
    Emission emission{s, guards_of(state_, bounds_, index_, s), loops, loops};
    for (int i = loops; i-- > 0;) {
      if (stage.loops[stage.order[i]].reduce) emission.first_reduce = i;
    }
    if (const int matrix = first_matrix_loop(stage); matrix >= 0)
      emission.first_reduce = std::min(emission.first_reduce, matrix);
    std::vector<bool> extra = loops_of_extra_axes(s);
    // Each thread has its own copy of the results that do not move with a loop over threads. Where
    // results are stored in memory, the first of these threads stores them.
    for (const int leaf : stage.thread_loops()) {
      const bool stores_all = stage.scope == ir::Scope::kFragment;
      if (!extra[leaf] || (!stores_all && !stage.info->stage.reduce.empty())) continue;
      extra[leaf] = false;
      if (!stores_all) emission.threads.push_back(leaf);
    }
    for (size_t i = 0; i < extra.size(); ++i) {
      if (extra[i]) emission.wide = std::min(emission.wide, bounds_.stages[s].loops[i].last_leaf);
    }
    for (int i = emission.wide; i < loops; ++i) {
      const int leaf = stage.order[i];
      const Loop& loop = stage.loops[leaf];
      const bool matters = bounds_.stages[s].loops[leaf].extent > 1 || i == emission.first_reduce;
      if (matters && (loop.reduce || !extra[leaf])) {
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
    const Expr condition = guard_at(e.guards.guards, level, mode == Mode::kInit);
    std::vector<Stmt> body;
    if (mode == Mode::kAll && level == e.first_reduce &&
        !state_.stages[e.s].info->stage.reduce.empty()) {
      body = emit_inside(e, level, Mode::kInit);
      for (Stmt& s : emit_inside(e, level, Mode::kUpdate)) body.push_back(std::move(s));
    } else {
      body = emit_inside(e, level, mode);
    }
    // Stages computed in the loop that was just opened are needed only where the guards hold.
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
    if (mode == Mode::kUpdate && loop.annotation == Annotation::kMatrix)
      return emit_matrix(e, level);
    std::vector<Stmt> body = emit_level(e, level + 1, mode);
    if (mode == Mode::kInit) return {make_loop(e, leaf, std::move(body))};
    add_prefetches(e.s, leaf, body);
    if (!has_pipelines_) return {make_loop(e, leaf, std::move(body))};
    return emit_pipeline(e, level, std::move(body));
  }

  // The loop of a level, around `body`, with the copies that work ahead in it.
  std::vector<Stmt> emit_pipeline(const Emission& e, int level, std::vector<Stmt> body) {
    const int leaf = state_.stages[e.s].order[level];
    PipelinedLoop loop{index_.variable(e.s, leaf), extent_of(e.s, leaf)};
    const Expr condition = guard_at(e.guards.guards, level + 1);
    for (size_t p = 0; p < state_.stages.size(); ++p) {
      const StageState& stage = state_.stages[p];
      const Place& place = stage.compute;
      const bool is_here = stage.pipeline_depth > 0 && place.kind == AttachKind::kAt &&
                           place.stage == e.s && place.loop == leaf;
      if (!is_here) continue;
      std::vector<Stmt> copy = emit_stage(static_cast<int>(p));
      if (condition) copy = {ir::make_if(condition, std::move(copy))};
      loop.copies.push_back({ir::make_block(std::move(copy)),
                             index_.physical_buffer(stage.buffer()), stage.pipeline_depth,
                             stage.transport});
    }
    return loop.around(std::move(body), [&](std::vector<Stmt> iteration) {
      return make_loop(e, leaf, std::move(iteration));
    });
  }

  std::vector<Stmt> emit_matrix(const Emission& e, int level) {
    for (const Guard& guard : e.guards.guards) {
      if (guard.level > level)
        fail(invalid("{} has tests inside of its matrix loops", state_.stages[e.s].name()));
    }
    Result<Stmt> made = matrix_statement(state_, bounds_, index_, e.s);
    if (made.ok()) return {*std::move(made)};
    fail(made.status());
    return {};
  }

  Stmt make_loop(const Emission& e, int leaf, std::vector<Stmt> body) const {
    const int s = e.s;
    const Loop& loop = state_.stages[s].loops[leaf];
    const std::vector<int>& peeled = e.guards.peeled;
    ir::ForKind kind = ir::ForKind::kSerial;
    if (loop.annotation == Annotation::kVectorize) kind = ir::ForKind::kVectorized;
    if (loop.annotation == Annotation::kUnroll) kind = ir::ForKind::kUnrolled;
    if (loop.annotation == Annotation::kParallel) kind = ir::ForKind::kParallel;
    if (loop.annotation == Annotation::kThread) kind = ir::ForKind::kThread;
    if (loop.annotation == Annotation::kWarp) kind = ir::ForKind::kWarp;
    if (loop.annotation == Annotation::kLane) kind = ir::ForKind::kLane;
    if (is_thread_loop(kind) && !index_.keeps_loop(s, leaf)) {
      for (Stmt& stmt : body)
        stmt = ir::substitute(stmt, {{index_.variable(s, leaf), ir::constant(0)}});
      return ir::make_block(std::move(body));
    }
    const bool peel = kind == ir::ForKind::kParallel
                          ? loop.test
                          : loop.peel || std::count(peeled.begin(), peeled.end(), leaf) > 0;
    return ir::make_for(index_.variable(s, leaf), ir::constant(0), extent_of(s, leaf), kind,
                        std::move(body), peel);
  }

  Expr extent_of(int s, int leaf) const {
    const int64_t whole = bounds_.stages[s].loops[leaf].extent;
    for (const TripLimit& end : bounds_.stages[s].trip_limits) {
      if (end.loop != leaf) continue;
      const Expr chunks =
          ir::floordiv(limit_value(end.limit) + (end.step - 1), end.step) * (end.step / end.chunk);
      if (state_.stages[s].loops[leaf].annotation != Annotation::kVectorize)
        return ir::min(ir::constant(whole), chunks);
      return ir::min(ir::constant(whole / end.chunk), chunks) * end.chunk;
    }
    return ir::constant(whole);
  }

  Expr limit_value(const Linear& limit) const {
    Linear loops{.constant = limit.constant, .terms = {}};
    Expr sizes;
    for (const Term& term : limit) {
      if (term.stage != kSizeTerm) {
        loops.terms.push_back(term);
        continue;
      }
      const Expr size = size_of_run(state_, term) * term.coef;
      sizes = sizes ? sizes + size : size;
    }
    const Expr value = index_.value(loops);
    return sizes ? sizes + value : value;
  }

  // The loops from `level` on, with their guards, around a body that attaches nothing.
  std::vector<Stmt> inner_loops(const Emission& e, int level, std::vector<Stmt> body) const {
    const std::vector<int>& order = state_.stages[e.s].order;
    for (int i = static_cast<int>(order.size()); i-- > level;) {
      const Expr condition = guard_at(e.guards.guards, i + 1);
      if (condition) body = {ir::make_if(condition, std::move(body))};
      body = {make_loop(e, order[i], std::move(body))};
    }
    return body;
  }

  std::vector<Stmt> extern_body(int s) const {
    const ir::VarMap map = index_.axis_values(s);
    std::vector<Stmt> body;
    for (const Stmt& stmt : state_.stages[s].info->stage.body)
      body.push_back(with_lanes(index_.place_body(stmt, map, s), state_.stages[s].body_lanes));
    return body;
  }

  // Returns the statement with the loop over `var` vectorized.
  static Stmt with_lanes(const Stmt& s, const ir::VarPtr& var) {
    return ir::rewrite_stmts(s, [&](const Stmt& loop) {
      if (!var || loop->var != var) return loop;
      return ir::make_for(var, loop->min, loop->extent, ir::ForKind::kVectorized, loop->body);
    });
  }

  // The loops from `level` on inside those of the body.
  std::vector<Stmt> emit_sunk(const Emission& e, int level) const {
    const std::vector<int>& order = state_.stages[e.s].order;
    std::vector<ir::SunkLoop> loops;
    for (size_t i = static_cast<size_t>(level); i < order.size(); ++i) {
      loops.push_back({index_.variable(e.s, order[i]), bounds_.stages[e.s].loops[order[i]].extent});
    }
    return ir::sink_loops(extern_body(e.s), loops, [&](std::vector<Stmt> body) {
      return inner_loops(e, level, std::move(body));
    });
  }

  std::vector<Stmt> emit_point(const Emission& e, int level, Mode mode) {
    const compute::Stage& what = state_.stages[e.s].info->stage;
    if (what.is_extern()) return extern_body(e.s);
    const ir::VarMap map = index_.axis_values(e.s);
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
      for (Stmt& s : stores) s = by_first_thread(e, s);
    }
    for (Stmt& s : stores) s = index_.place_stores(s, map, e.s);
    return stores;
  }

  // Returns whether a result moves with a loop of the stage.
  bool moves_with(const Stmt& store, int s, int leaf) const {
    const StageInfo& info = *state_.stages[s].info;
    for (size_t a = 0; a < info.axes.size(); ++a) {
      const Linear& own = bounds_.stages[s].axes[a].own;
      const bool is_of_axis =
          std::any_of(own.begin(), own.end(), [&](const Term& term) { return term.loop == leaf; });
      const bool moves = is_of_axis && std::any_of(store->indices.begin(), store->indices.end(),
                                                   [&](const Expr& index) {
                                                     return ir::uses(index, info.axes[a].var.get());
                                                   });
      if (moves) return true;
    }
    return false;
  }

  // Lets one thread store a result that does not move with some of the loops over threads.
  Stmt by_first_thread(const Emission& e, const Stmt& store) const {
    if (store->kind != ir::StmtKind::kStore) return store;
    Expr first;
    for (const int leaf : e.threads) {
      if (moves_with(store, e.s, leaf)) continue;
      const Expr is_first =
          ir::make(ir::Op::kEq, {ir::variable(index_.variable(e.s, leaf)), ir::constant(0)});
      first = first ? ir::logical_and(first, is_first) : is_first;
    }
    return first ? ir::make_if(first, {store}) : store;
  }

  // Around the body of a loop: what is computed there first, and the storage that lives there.
  std::vector<Stmt> with_attached(int s, int leaf, std::vector<Stmt> body) {
    const auto is_here = [&](const Place& place) {
      return place.kind == AttachKind::kAt && place.stage == s && place.loop == leaf;
    };
    std::vector<Stmt> all;
    for (size_t p = 0; p < state_.stages.size(); ++p) {
      if (!is_here(state_.stages[p].compute) || state_.stages[p].pipeline_depth > 0) continue;
      for (Stmt& stmt : emit_stage(static_cast<int>(p))) all.push_back(std::move(stmt));
    }
    for (Stmt& stmt : body) all.push_back(std::move(stmt));
    for (size_t p = state_.stages.size(); p-- > 0;) {
      if (!is_here(state_.stages[p].store) || state_.stages[p].pipeline_depth > 0) continue;
      const auto& outputs = state_.stages[p].info->stage.outputs;
      for (size_t o = outputs.size(); o-- > 0;) {
        all = {ir::make_alloc(index_.physical_buffer(outputs[o].buffer), std::move(all))};
      }
    }
    return all;
  }

  void add_prefetches(int s, int leaf, std::vector<Stmt>& body) const {
    const StageState& stage = state_.stages[s];
    for (const PrefetchMark& mark : stage.prefetches) {
      if (mark.loop != leaf) continue;
      // A buffer that is made inside the tile is in the caches already.
      if (index_.physical_buffer(mark.buffer)->scope != ir::Scope::kGlobal) continue;
      const ir::VarPtr& var = index_.variable(s, leaf);
      ir::VarMap ahead = {{var, ir::variable(var) + mark.distance}};
      for (int i = stage.find_leaf(leaf) + 1; i < static_cast<int>(stage.order.size()); ++i) {
        ahead.push_back({index_.variable(s, stage.order[i]), ir::constant(0)});
      }
      for (const compute::Output& output : stage.info->stage.outputs) {
        ir::visit(output.value, [&](const Expr& e) {
          if (e->op != ir::Op::kLoad || e->buffer != mark.buffer) return;
          std::vector<Expr> indices;
          for (const Expr& index : e->args)
            indices.push_back(ir::substitute(index, index_.axis_values(s)));
          indices = index_.physical_indices(mark.buffer, indices, s);
          for (Expr& index : indices) index = ir::substitute(index, ahead);
          body.insert(body.begin(),
                      ir::make_prefetch(index_.physical_buffer(mark.buffer), std::move(indices)));
        });
      }
    }
  }

  const State& state_;
  const Bounds& bounds_;
  IndexMap index_;
  bool has_pipelines_;  // some stage works ahead of the loop that reads it
  Status status_;
};

}  // namespace

Result<ir::Program> lower_raw(const State& state, const Bounds& bounds) {
  return Lowering(state, bounds).run();
}

Result<ir::Program> lower(const State& state, const Bounds& bounds,
                          const ir::PipelineOptions& options) {
  HONE_ASSIGN_OR_RETURN(ir::Program program, lower_raw(state, bounds));
  return ir::run_pipeline(ir::cpu_pipeline(), std::move(program), options);
}

Result<ir::Program> lower(const compute::Dag& dag, const Steps& steps,
                          std::span<const ir::Pass> passes, const ir::PipelineOptions& options) {
  HONE_ASSIGN_OR_RETURN(State state, replay(dag, steps));
  order_packing(state);
  HONE_ASSIGN_OR_RETURN(const Bounds bounds, infer_bounds(state));
  HONE_ASSIGN_OR_RETURN(ir::Program program, lower_raw(state, bounds));
  return ir::run_pipeline(passes, std::move(program), options);
}

Result<ir::Program> lower(const compute::Dag& dag, const Steps& steps,
                          const ir::PipelineOptions& options) {
  return lower(dag, steps, ir::cpu_pipeline(), options);
}

}  // namespace hone::schedule
