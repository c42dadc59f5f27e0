#include "hone/analysis/body_nests.h"

#include <algorithm>

#include "hone/ir/ranges.h"
#include "hone/ir/visit.h"

namespace hone::analysis {
namespace {

using ir::Expr;
using ir::StmtKind;
using ir::StmtNode;
using schedule::Annotation;

Annotation annotation_of(ir::ForKind kind) {
  switch (kind) {
    case ir::ForKind::kParallel: return Annotation::kParallel;
    case ir::ForKind::kVectorized: return Annotation::kVectorize;
    case ir::ForKind::kUnrolled: return Annotation::kUnroll;
    default: return Annotation::kNone;
  }
}

class BodyReader {
 public:
  BodyReader(const schedule::State& state, const schedule::Bounds& bounds, int stage,
             std::vector<Nest>& nests)
      : state_(state),
        stage_(stage),
        what_(state.stages[static_cast<size_t>(stage)]),
        around_(stage_loops(state, bounds, stage)),
        nests_(nests),
        next_(static_cast<int>(what_.loops.size())) {
    outside_ = around_.loops.size();
    for (size_t i = 0; what_.sunk >= 0 && i < around_.loops.size(); ++i) {
      const std::vector<int>& digits = what_.loops[static_cast<size_t>(what_.sunk)].digits;
      const int first = digits.empty() ? what_.sunk : digits[0];
      if (around_.loops[i].loop == first) outside_ = std::min(outside_, i);
    }
    for (const compute::Axis& axis : what_.info->axes) ranges_.bind(axis.var, {0, axis.extent - 1});
  }

  void run() {
    for (const ir::Stmt& s : what_.info->stage.body) visit(*s);
  }

 private:
  struct BodyLoop {
    ir::VarPtr var;
    NestLoop loop;
  };

  void visit(const StmtNode& s) {
    switch (s.kind) {
      case StmtKind::kFor: visit_loop(s); return;
      case StmtKind::kIf:
        conditions_.push_back(s.condition);
        visit_children(s);
        conditions_.pop_back();
        return;
      case StmtKind::kStore: add_store(s); return;
      case StmtKind::kExtern: add_call(s); return;
      default: visit_children(s);
    }
  }
  void visit_children(const StmtNode& s) {
    for (const ir::Stmt& child : s.body) visit(*child);
  }

  void visit_loop(const StmtNode& s) {
    const bool lanes = what_.body_lanes && s.var == what_.body_lanes;
    const int64_t most = ranges_.of(s.extent).hi;
    const int64_t extent = most == ir::kPosInf ? kUnknownTrips : std::max<int64_t>(most, 1);
    loops_.push_back({s.var,
                      {stage_, next_++, extent,
                       lanes ? Annotation::kVectorize : annotation_of(s.for_kind), false}});
    const ir::Ranges::Mark mark = ranges_.mark();
    ranges_.bind_loop(s.var, s.min, s.extent);
    visit_children(s);
    ranges_.reset(mark);
    loops_.pop_back();
  }

  Nest new_nest() const {
    Nest nest;
    nest.stage = stage_;
    nest.root = around_.root;
    nest.loops.assign(around_.loops.begin(), around_.loops.begin() + at(outside_));
    for (const BodyLoop& loop : loops_) nest.loops.push_back(loop.loop);
    nest.loops.insert(nest.loops.end(), around_.loops.begin() + at(outside_), around_.loops.end());
    nest.tests.assign(nest.loops.size(), false);
    for (const Expr& condition : conditions_) nest.useful *= ir::has_load(condition) ? 0.5 : 1;
    return nest;
  }
  static std::ptrdiff_t at(size_t place) { return static_cast<std::ptrdiff_t>(place); }

  // An access that may reach all of the buffer.
  NestAccess access_to(const Nest& nest, const ir::BufferPtr& buffer, bool write) const {
    NestAccess access;
    access.buffer = buffer.get();
    access.write = write;
    access.scope = buffer->scope;
    access.element_bytes = static_cast<int>(dtype_bytes(buffer->dtype));
    const ir::Param* param = state_.find_param(buffer);
    access.constant = param != nullptr && param->role == ir::Role::kConstant;
    access.shape.assign(buffer->shape.begin(), buffer->shape.end());
    access.move = Moves(buffer->shape.size(), nest.loops.size());
    for (const int64_t extent : buffer->shape) access.spread.push_back(extent - 1);
    return access;
  }

  NestAccess access_at(const Nest& nest, const ir::BufferPtr& buffer,
                       const std::vector<Expr>& indices, bool write) const {
    NestAccess access = access_to(nest, buffer, write);
    for (size_t d = 0; d < indices.size(); ++d) {
      ir::Linear form = ir::linearize(indices[d]);
      const std::span<int64_t> row = access.move[d];
      const auto take = [&](const ir::VarPtr& var) {
        const int64_t coefficient = form.coefficient(var);
        if (coefficient != 0) form = ir::without(form, ir::variable(var));
        return coefficient;
      };
      for (size_t a = 0; a < what_.info->axes.size(); ++a) {
        const int64_t coefficient = take(what_.info->axes[a].var);
        for (size_t i = 0; i < around_.loops.size(); ++i)
          row[i < outside_ ? i : i + loops_.size()] += coefficient * around_.axes[a][i];
      }
      for (size_t i = 0; i < loops_.size(); ++i) row[outside_ + i] += take(loops_[i].var);
      if (form.is_constant()) access.spread[d] = 0;
    }
    return access;
  }

  void add_loads(Nest& nest, const Expr& whole, std::vector<Expr>& known) const {
    ir::visit(whole, [&](const Expr& e) {
      if (e->op != ir::Op::kLoad || !e->buffer->values.empty()) return;
      if (std::any_of(known.begin(), known.end(),
                      [&](const Expr& other) { return ir::equal(e, other); }))
        return;
      known.push_back(e);
      nest.accesses.push_back(access_at(nest, e->buffer, e->args, false));
    });
  }

  void add_store(const StmtNode& s) {
    Nest nest = new_nest();
    std::vector<Expr> known;
    for (const Expr& condition : conditions_) add_loads(nest, condition, known);
    ir::for_each_expr(s, [&](const Expr& e) { add_loads(nest, e, known); });
    NestAccess write = access_at(nest, s.buffer, s.indices, true);
    const bool updates = std::any_of(known.begin(), known.end(),
                                     [&](const Expr& e) { return e->buffer == s.buffer; });
    for (size_t i = outside_; updates && i < outside_ + loops_.size(); ++i)
      nest.loops[i].reduce = !write.moves_with(i);
    nest.accesses.push_back(std::move(write));
    compute::Stage value;
    value.outputs.push_back({.buffer = s.buffer, .value = s.value});
    nest.ops = compute::count_ops(value);
    finish(std::move(nest));
  }

  // A function gets whole buffers, its results last.
  void add_call(const StmtNode& s) {
    Nest nest = new_nest();
    for (size_t i = 0; i < s.buffers.size(); ++i)
      nest.accesses.push_back(access_to(nest, s.buffers[i], i + 1 == s.buffers.size()));
    finish(std::move(nest));
  }

  void finish(Nest nest) {
    for (NestAccess& access : nest.accesses) access.remember_reaches(nest.loops);
    nests_.push_back(std::move(nest));
  }

  const schedule::State& state_;
  int stage_;
  const schedule::StageState& what_;
  StageLoops around_;
  size_t outside_ = 0;  // loops of the schedule that are outside of the body's
  std::vector<Nest>& nests_;
  int next_;  // number of the next loop of the body
  ir::Ranges ranges_;
  std::vector<BodyLoop> loops_;  // around the current statement, outermost first
  std::vector<Expr> conditions_;
};

}  // namespace

std::vector<Nest> build_body_nests(const schedule::State& state, const schedule::Bounds& bounds) {
  std::vector<Nest> nests;
  for (size_t s = 0; s < state.stages.size(); ++s) {
    if (state.stages[s].info->stage.is_extern())
      BodyReader(state, bounds, static_cast<int>(s), nests).run();
  }
  return nests;
}

}  // namespace hone::analysis
