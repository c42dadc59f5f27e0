#include "hone/schedule/split_updates.h"

#include <algorithm>
#include <optional>

#include "hone/compute/affine.h"
#include "hone/ir/linear.h"
#include "hone/ir/ranges.h"
#include "hone/ir/visit.h"

namespace hone::schedule {
namespace {

using compute::Axis;
using compute::Stage;
using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

bool is_loop(const Stmt& s) {
  return s->kind == StmtKind::kFor && ir::is_const_int(s->min, 0) && ir::is_const_int(s->extent) &&
         !ir::is_thread_loop(s->for_kind);
}

// A store inside loops and conditions.
struct Nest {
  std::vector<Axis> loops;
  std::vector<Expr> conditions;
  Stmt store;
};

std::optional<Nest> match_nest(Stmt s, const ir::BufferPtr& result) {
  Nest nest;
  for (; is_loop(s) || s->kind == StmtKind::kIf; s = s->body[0]) {
    if (s->body.size() != 1) return std::nullopt;
    if (s->kind == StmtKind::kIf) {
      nest.conditions.push_back(s->condition);
    } else {
      nest.loops.push_back({s->var, s->extent->int_value});
    }
  }
  if (s->kind != StmtKind::kStore || s->buffer != result) return std::nullopt;
  nest.store = s;
  return nest;
}

bool is_variable(const Expr& e, const ir::VarPtr& var) {
  return e->op == Op::kVar && e->var == var;
}

// Returns the dimension whose index is the variable alone; -1 if none is.
int own_dimension(const std::vector<Expr>& indices, const ir::VarPtr& var) {
  const auto found = std::find_if(indices.begin(), indices.end(),
                                  [&](const Expr& index) { return is_variable(index, var); });
  return found == indices.end() ? -1 : static_cast<int>(found - indices.begin());
}

// Returns whether a value that depends on data is the number of one of `extent` elements.
bool lies_within(const Expr& e, int64_t extent) {
  const ir::Interval range = ir::Ranges().of(e);
  return 0 <= range.lo && range.hi < extent;
}

bool loads(const Expr& e, const ir::BufferPtr& buffer) {
  bool found = false;
  ir::visit(e, [&](const Expr& node) {
    found = found || (node->op == Op::kLoad && node->buffer == buffer);
  });
  return found;
}

// The copy of all elements of the result.
std::optional<Stage> copy_stage(const Stage& stage, std::string name) {
  const std::optional<Nest> nest = match_nest(stage.body[0], stage.outputs[0].buffer);
  if (!nest || !nest->conditions.empty()) return std::nullopt;
  Stage copy;
  copy.name = std::move(name);
  ir::VarMap fresh;
  for (const std::vector<Axis>* some : {&stage.axes, &nest->loops}) {
    for (const Axis& axis : *some) {
      copy.axes.push_back(compute::make_axis(fmt::format("c{}", copy.axes.size()), axis.extent));
      fresh.push_back({axis.var, ir::variable(copy.axes.back().var)});
    }
  }
  const ir::BufferPtr& result = nest->store->buffer;
  std::vector<Expr> write;
  for (const Expr& index : nest->store->indices) write.push_back(ir::substitute(index, fresh));
  int64_t points = 1;
  for (const Axis& axis : copy.axes) {
    const int at = own_dimension(write, axis.var);
    if (at < 0 || axis.extent != result->shape[static_cast<size_t>(at)]) return std::nullopt;
    points *= axis.extent;
  }
  const Expr value = ir::substitute(nest->store->value, fresh);
  if (points != result->num_elements() || value->op != Op::kLoad || value->buffer == result)
    return std::nullopt;
  const std::vector<ir::VarPtr> vars = compute::stage_vars(copy);
  for (const Expr& index : value->args) {
    if (!compute::affine_row(index, vars)) return std::nullopt;
  }
  copy.outputs.push_back({.buffer = result, .write = std::move(write), .value = value});
  return copy;
}

// The updates of a body, as a nest of loops over updates around loops over an update's elements.
class Updates {
 public:
  Updates(const Stage& stage, Nest nest, const Stage& copy)
      : stage_(stage), nest_(std::move(nest)), copy_(copy), axes_(stage.axes) {}

  std::optional<DividedUpdates> divide() {
    drop_searches();
    if (!sort_loops()) return std::nullopt;
    for (const Axis& axis : axes_) {
      const int at = own_dimension(nest_.store->indices, axis.var);
      if (at < 0) return std::nullopt;
      own_dims_.push_back(at);
    }
    const Expr source = source_of(nest_.store->indices);
    if (source == nullptr) return std::nullopt;
    Stage made = stage_;
    made.axes = axes_;
    made.axes.insert(made.axes.end(), updates_.begin(), updates_.end());
    made.body = {point(source)};
    DividedUpdates divided{copy_, std::move(made), total_};
    for (const std::vector<Axis>* some : {&axes_, &updates_, &elements_}) {
      for (const Axis& axis : *some) divided.points *= axis.extent;
    }
    return divided;
  }

 private:
  // A body may go through all updates for each point of an axis, and take those that hit it. Then
  // the axis is not needed: an update says where it hits, if that is a point of the axis.
  void drop_searches() {
    for (size_t c = 0; c < nest_.conditions.size();) {
      const Expr condition = nest_.conditions[c];
      const auto axis = std::find_if(axes_.begin(), axes_.end(), [&](const Axis& a) {
        return condition->op == Op::kEq && is_variable(condition->args[1], a.var) &&
               !ir::uses(condition->args[0], a.var.get()) &&
               lies_within(condition->args[0], a.extent);
      });
      if (axis == axes_.end()) {
        ++c;
        continue;
      }
      const ir::VarMap hit = {{axis->var, condition->args[0]}};
      nest_.conditions.erase(nest_.conditions.begin() + static_cast<std::ptrdiff_t>(c));
      nest_.store = ir::substitute(nest_.store, hit);
      for (Expr& other : nest_.conditions) other = ir::substitute(other, hit);
      axes_.erase(axis);
    }
  }

  // Loops over elements of an update move through a dimension of the result.
  bool sort_loops() {
    for (const Axis& loop : nest_.loops) {
      const int at = own_dimension(nest_.store->indices, loop.var);
      if (at >= 0) {
        elements_.push_back(loop);
        own_dims_.push_back(at);
      } else {
        updates_.push_back(loop);
        total_ *= loop.extent;
      }
    }
    const bool is_whole =
        std::none_of(nest_.conditions.begin(), nest_.conditions.end(), [&](const Expr& condition) {
          return std::any_of(elements_.begin(), elements_.end(),
                             [&](const Axis& loop) { return ir::uses(condition, loop.var.get()); });
        });
    return is_whole && !updates_.empty();
  }

  // What the copy puts at a place of the result.
  [[nodiscard]] Expr source_of(const std::vector<Expr>& place) const {
    const compute::Output& output = copy_.outputs[0];
    ir::VarMap at;
    for (size_t d = 0; d < output.write.size(); ++d) {
      if (output.write[d]->op == Op::kVar) {
        at.push_back({output.write[d]->var, place[d]});
      } else if (!ir::is_const_int(output.write[d])) {
        return nullptr;
      }
    }
    return ir::substitute(output.value, at);
  }

  // The point of an update: see the header.
  [[nodiscard]] Stmt point(const Expr& source) const {
    const ir::BufferPtr first = ir::make_buffer("first", DType::kI64, {}, ir::Scope::kStack);
    const ir::BufferPtr kept =
        ir::make_buffer("kept", nest_.store->buffer->dtype, {}, ir::Scope::kStack);
    std::vector<Axis> others;
    ir::VarMap other;
    for (const Axis& axis : updates_) {
      others.push_back(compute::make_axis("w" + std::to_string(others.size()), axis.extent));
      other.push_back({axis.var, ir::variable(others.back().var)});
    }
    const std::vector<Expr>& place = nest_.store->indices;
    Expr same = ir::constant_bool(true);
    const auto both = [](const Expr& a, const Expr& b) {
      return ir::is_true(a) ? b : ir::logical_and(a, b);
    };
    for (size_t d = 0; d < place.size(); ++d) {
      if (std::count(own_dims_.begin(), own_dims_.end(), static_cast<int>(d)) == 0)
        same = both(same, ir::make(Op::kEq, {ir::substitute(place[d], other), place[d]}));
    }
    Expr counts = ir::constant_bool(true);
    for (const Expr& condition : nest_.conditions) counts = both(counts, condition);
    same = both(same, ir::substitute(counts, other));
    const Expr value = ir::rewrite(ir::substitute(nest_.store->value, other), [&](const Expr& e) {
      return e->op == Op::kLoad && e->buffer == nest_.store->buffer ? ir::load(kept, {}) : nullptr;
    });
    const Expr number = number_of(updates_), number_of_other = number_of(others);
    Stmt search =
        ir::make_if(same, {ir::make_store(first, {}, ir::min(ir::load(first, {}), number_of_other)),
                           ir::make_store(kept, {}, value)});
    for (size_t i = others.size(); i-- > 0;)
      search = ir::make_for(others[i].var, ir::constant(0), ir::constant(others[i].extent),
                            ir::ForKind::kSerial, {search});
    Stmt body = ir::make_alloc(
        first, {ir::make_alloc(kept, {ir::make_store(first, {}, ir::constant(total_)),
                                      ir::make_store(kept, {}, source), search,
                                      ir::make_if(ir::make(Op::kEq, {ir::load(first, {}), number}),
                                                  {ir::make_store(nest_.store->buffer, place,
                                                                  ir::load(kept, {}))})})});
    for (size_t i = elements_.size(); i-- > 0;)
      body = ir::make_for(elements_[i].var, ir::constant(0), ir::constant(elements_[i].extent),
                          ir::ForKind::kSerial, {body});
    return ir::is_true(counts) ? body : ir::make_if(counts, {body});
  }

  static Expr number_of(const std::vector<Axis>& axes) {
    Expr number = ir::constant(0);
    for (const Axis& axis : axes) number = number * axis.extent + ir::variable(axis.var);
    return number;
  }

  const Stage& stage_;
  Nest nest_;
  const Stage& copy_;
  std::vector<Axis> axes_, updates_, elements_;
  std::vector<int> own_dims_;  // of the result, along which points and elements lie
  int64_t total_ = 1;
};

}  // namespace

Result<DividedUpdates> split_updates(const Stage& stage, std::string copy_name) {
  const Status other = invalid("{} does not copy and then update its result", stage.name);
  if (stage.body.size() != 2 || stage.outputs.size() != 1) return other;
  std::optional<Stage> copy = copy_stage(stage, std::move(copy_name));
  std::optional<Nest> nest = match_nest(stage.body[1], stage.outputs[0].buffer);
  if (!copy || !nest) return other;
  // Where updates go does not depend on the result.
  const auto loads_result = [&](const Expr& e) { return loads(e, nest->store->buffer); };
  if (std::any_of(nest->store->indices.begin(), nest->store->indices.end(), loads_result) ||
      std::any_of(nest->conditions.begin(), nest->conditions.end(), loads_result))
    return other;
  // An update reads the element that it writes, and no other one.
  bool reads_own = true;
  ir::visit(nest->store->value, [&](const Expr& e) {
    if (e->op == Op::kLoad && e->buffer == nest->store->buffer)
      reads_own = reads_own && ir::equal(e, ir::load(e->buffer, nest->store->indices));
  });
  if (!reads_own) return other;
  std::optional<DividedUpdates> divided = Updates(stage, *std::move(nest), *copy).divide();
  if (!divided) return other;
  return *std::move(divided);
}

}  // namespace hone::schedule
