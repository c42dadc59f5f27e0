#include "hone/schedule/pipeline.h"

#include <algorithm>

#include "hone/ir/visit.h"

namespace hone::schedule {

using ir::Expr;
using ir::Stmt;
using Stmts = std::vector<Stmt>;

namespace {

constexpr int64_t kMostDepth = 8;  // shared memory ends earlier

bool is_in_global_memory(const State& state, const ir::BufferPtr& buffer) {
  const StageList writers = state.writers(buffer);
  return std::all_of(writers.begin(), writers.end(), [&](int writer) {
    return state.stages[static_cast<size_t>(writer)].compute.kind == AttachKind::kRoot;
  });
}

bool is_zero(const Expr& e) {
  return ir::is_const_int(e, 0) || (e->op == ir::Op::kFloat && e->float_value == 0);
}

Stmt asynchronous(const Stmt& copy, const ir::BufferPtr& ring) {
  return ir::rewrite_stmts(copy, [&](const Stmt& s) {
    if (s->kind != ir::StmtKind::kStore || s->buffer != ring) return s;
    return ir::make_async_store(s->buffer, s->indices, s->value);
  });
}

// The copy for another iteration, if there is one.
Stmt at(const Stmt& copy, const PipelinedLoop& loop, const Expr& iteration) {
  const Stmt moved = ir::substitute(copy, {{loop.variable, iteration}});
  return ir::make_if(ir::less(iteration, loop.extent), {moved});
}

// The halves of a copy through registers.
struct InRegisters {
  ir::BufferPtr fragment;
  Stmt load, store;
};
InRegisters through_registers(const AheadCopy& copy) {
  std::vector<int64_t> shape;
  std::vector<Expr> element;
  for (const bool of_threads : {true, false}) {
    ir::for_each_stmt(*copy.body, [&](const ir::StmtNode& s) {
      if (s.kind != ir::StmtKind::kFor || ir::is_thread_loop(s.for_kind) != of_threads) return;
      shape.push_back(s.extent->int_value);
      element.push_back(ir::variable(s.var));
    });
  }
  InRegisters made{ir::make_buffer(copy.buffer->name + ".next", copy.buffer->dtype,
                                   std::move(shape), ir::Scope::kFragment),
                   nullptr, nullptr};
  const auto half = [&](bool loads) {
    return ir::rewrite_stmts(copy.body, [&](const Stmt& s) {
      if (s->kind != ir::StmtKind::kStore) return s;
      return loads ? ir::make_store(made.fragment, element, s->value)
                   : ir::make_store(s->buffer, s->indices, ir::load(made.fragment, element));
    });
  };
  made.load = half(true);
  made.store = half(false);
  return made;
}

}  // namespace

bool is_plain_copy(const compute::Stage& stage) {
  const Expr& value = stage.outputs[0].value;
  if (value->op == ir::Op::kLoad) return true;
  return value->op == ir::Op::kSelect && value->args[1]->op == ir::Op::kLoad &&
         is_zero(value->args[2]);
}

Status pipeline(const Pipeline& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  const int64_t most = step.transport == Transport::kRegisters ? 2 : kMostDepth;
  if (step.depth < 2 || step.depth > most)
    return invalid("a depth of {}, expected {}", step.depth,
                   most == 2 ? "2" : fmt::format("2 to {}", most));
  StageState& stage = state.stages[static_cast<size_t>(index)];
  stage.pipeline_depth = step.depth;
  stage.transport = step.transport;
  return ok_status();
}

Status check_pipeline(const State& state, const Bounds& bounds, int index) {
  const StageState& stage = state.stages[static_cast<size_t>(index)];
  const std::string& name = stage.name();
  if (stage.scope != ir::Scope::kShared || stage.compute.kind != AttachKind::kAt)
    return invalid("{} works ahead, but is not in shared memory", name);
  if (stage.compute.loop != stage.store.loop || stage.fold_dim >= 0)
    return invalid("{} works ahead, but is stored elsewhere than it is computed", name);
  if (!stage.info->stage.reduce.empty() || stage.info->stage.outputs.size() != 1)
    return invalid("{} works ahead, but is no copy", name);
  if (!bounds.stages[static_cast<size_t>(index)].trip_limits.empty())
    return invalid("{} works ahead, but its loops end early", name);
  const StageState& at = state.stages[static_cast<size_t>(stage.compute.stage)];
  const Loop& loop = at.loops[static_cast<size_t>(stage.compute.loop)];
  if (loop.annotation != Annotation::kNone)
    return invalid("{} works ahead in loop {}, which is not serial", name, loop.name);
  for (const compute::Access& read : stage.info->reads) {
    if (!is_in_global_memory(state, read.buffer))
      return invalid("{} works ahead, but reads {}, which its block computes", name,
                     read.buffer->name);
  }
  if (stage.transport == Transport::kAsync && !is_plain_copy(stage.info->stage))
    return invalid("{} computes something, so it cannot be copied asynchronously", name);
  for (const StageState& other : state.stages) {
    if (other.compute.kind == AttachKind::kAt && other.compute.stage == index)
      return invalid("{} works ahead, but {} is computed inside of it", name, other.name());
    const bool is_rival = other.pipeline_depth > 0 && other.transport == stage.transport &&
                          other.compute.kind == AttachKind::kAt &&
                          other.compute.stage == stage.compute.stage &&
                          other.compute.loop == stage.compute.loop;
    if (is_rival && other.pipeline_depth != stage.pipeline_depth)
      return invalid("{} and {} work ahead in one loop, but not as far", name, other.name());
  }
  return ok_status();
}

Stmts PipelinedLoop::around(Stmts body, const std::function<Stmt(Stmts)>& make) const {
  if (copies.empty()) return {make(std::move(body))};
  const Expr now = ir::variable(variable);
  Stmts before, first, last, async;
  std::vector<ir::BufferPtr> fragments;
  int64_t depth = 0;
  for (const AheadCopy& copy : copies) {
    if (copy.transport == Transport::kAsync) {
      async.push_back(asynchronous(copy.body, copy.buffer));
      depth = copy.depth;
      continue;
    }
    const InRegisters halves = through_registers(copy);
    before.push_back(at(copy.body, *this, ir::constant(0)));
    first.push_back(at(halves.load, *this, now + 1));
    last.push_back(at(halves.store, *this, now + 1));
    fragments.push_back(halves.fragment);
  }
  Stmts iteration;
  if (depth > 0) {
    const Stmt all = ir::make_block(async);
    for (int64_t i = 0; i + 1 < depth; ++i) {
      before.push_back(at(all, *this, ir::constant(i)));
      before.push_back(ir::make_commit());
    }
    iteration = {ir::make_wait(depth - 2), at(all, *this, now + (depth - 1)), ir::make_commit()};
  }
  for (Stmts* part : {&first, &body, &last})
    iteration.insert(iteration.end(), part->begin(), part->end());
  Stmts all = std::move(before);
  all.push_back(make(std::move(iteration)));
  for (const ir::BufferPtr& fragment : fragments) all = {ir::make_alloc(fragment, std::move(all))};
  for (const AheadCopy& copy : copies) all = {ir::make_alloc(copy.buffer, std::move(all))};
  return all;
}

}  // namespace hone::schedule
