#include "hone/ir/passes/roll_loops.h"

#include <algorithm>
#include <optional>
#include <set>

#include "hone/ir/linear.h"
#include "hone/ir/loads.h"
#include "hone/ir/passes/store_nest.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

using Buffers = std::set<const Buffer*>;  // looked up only, never iterated

int64_t copies_of_body(const Stmt& s) {
  return is_unrolled(s) && is_const_int(s->extent) ? s->extent->int_value : 1;
}

// Returns the loads of unknown values in the code that the statement becomes.
int64_t loads_in(const Stmt& s) {
  int64_t loads = 0;
  for (const Stmt& child : s->body) loads += loads_in(child);
  if (s->kind == StmtKind::kStore) {
    visit(s->value,
          [&](const Expr& e) { loads += e->op == Op::kLoad && e->buffer->values.empty() ? 1 : 0; });
  }
  return loads * copies_of_body(s);
}
int64_t loads_of(const StoreNest& nest) {
  int64_t loads = loads_in(nest.store);
  for (const Stmt& s : nest.around) loads *= copies_of_body(s);
  return loads;
}

// Calls f on every expression of the nest.
template <typename F>
void visit_nest(const StoreNest& nest, const F& f) {
  for (const Stmt& s : nest.around) for_each_expr(*s, [&](const Expr& e) { visit(e, f); });
  for_each_expr(*nest.store, [&](const Expr& e) { visit(e, f); });
}

bool any_uses(const std::vector<Expr>& indices, const Var* var) {
  return std::any_of(indices.begin(), indices.end(), [&](const Expr& e) { return uses(e, var); });
}

// The iterations stay in order, but what is chosen while code is made may not depend on them:
// places in registers, known values, extents.
bool may_roll_in_place(const Stmt& loop) {
  const Var* var = loop->var.get();
  const auto depends_on_loop = [&](const Expr& expr) {
    bool found = false;
    visit(expr, [&](const Expr& e) {
      const bool fixed = e->op == Op::kLoad &&
                         (e->buffer->scope == Scope::kRegister || !e->buffer->values.empty());
      found = found || (fixed && any_uses(e->args, var));
    });
    return found;
  };
  const auto depends = [&](const StmtNode& s) {
    return any_expr(s, depends_on_loop) ||
           (s.kind == StmtKind::kStore && s.buffer->scope == Scope::kRegister &&
            any_uses(s.indices, var)) ||
           (s.kind == StmtKind::kFor && uses(s.extent, var));
  };
  return is_const_int(loop->min) && is_const_int(loop->extent) && !any_stmt(*loop, depends);
}

class Pass {
 public:
  Pass(const Stmt& phase, int64_t max_loads, int64_t max_sum_loads)
      : max_loads_(max_loads), max_sum_loads_(max_sum_loads) {
    for_each_stmt(*phase, [&](const StmtNode& s) {
      if (s.kind == StmtKind::kStore && loads_from(s.value, s.buffer.get()))
        sums_.insert(s.buffer.get());
    });
  }

  Stmt run(const Stmt& phase) {
    const Stmt rolled = roll(phase);
    return to_stack_.empty() ? rolled : on_stack(rolled);
  }

 private:
  Stmt roll(const Stmt& s) {
    if (is_unrolled(s)) {
      const std::optional<StoreNest> nest = store_nest_of(s);
      if (nest && !loads_from(nest->store->value, nest->store->buffer.get()))
        return roll_nest(*nest);
    }
    const bool in_place =
        is_unrolled(s) && copies_ * loads_in(s) > max_sum_loads_ && may_roll_in_place(s);
    const int64_t outer_copies = copies_;
    if (!in_place) copies_ *= copies_of_body(s);
    const Stmt made = map_body(s, [&](const Stmt& child) { return roll(child); });
    copies_ = outer_copies;
    if (!in_place) return made;
    return make_for(s->var, s->min, s->extent, ForKind::kSerial, made->body);
  }

  Stmt roll_nest(StoreNest nest) {
    std::vector<Stmt> rolled;
    while (loads_of(nest) > max_loads_) {
      const auto loop = std::find_if(nest.around.begin(), nest.around.end(),
                                     [&](const Stmt& s) { return may_roll(nest, s); });
      if (loop == nest.around.end()) break;
      note_registers(nest, (*loop)->var.get());
      rolled.push_back(*loop);
      nest.around.erase(loop);
    }
    Stmt s = to_stmt(nest);
    for (size_t i = rolled.size(); i-- > 0;) {
      s = make_for(rolled[i]->var, rolled[i]->min, rolled[i]->extent, ForKind::kSerial, {s});
    }
    return s;
  }

  bool may_roll(const StoreNest& nest, const Stmt& loop) const {
    if (!is_unrolled(loop) || !is_const_int(loop->min) || !is_const_int(loop->extent) ||
        !stores_apart(nest, loop))
      return false;
    const Var* var = loop->var.get();
    bool may = !keeps_sum(*nest.store->buffer, nest.store->indices, var);
    visit_nest(nest, [&](const Expr& e) {
      if (e->op != Op::kLoad) return;
      may = may && e->buffer != nest.store->buffer && !keeps_sum(*e->buffer, e->args, var) &&
            (e->buffer->values.empty() || !any_uses(e->args, var));
    });
    return may;
  }
  bool keeps_sum(const Buffer& buffer, const std::vector<Expr>& indices, const Var* var) const {
    return buffer.scope == Scope::kRegister && sums_.contains(&buffer) && any_uses(indices, var);
  }

  void note_registers(const StoreNest& nest, const Var* var) {
    const auto note = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      if (buffer.scope == Scope::kRegister && any_uses(indices, var)) to_stack_.insert(&buffer);
    };
    note(*nest.store->buffer, nest.store->indices);
    visit_nest(nest, [&](const Expr& e) {
      if (e->op == Op::kLoad) note(*e->buffer, e->args);
    });
  }

  // The statement with those buffers on the stack.
  [[nodiscard]] Stmt on_stack(const Stmt& s) const {
    BufferMap moved;
    for_each_stmt(*s, [&](const StmtNode& node) {
      if (node.kind != StmtKind::kAlloc || !to_stack_.contains(node.buffer.get())) return;
      auto stack = std::make_shared<Buffer>(*node.buffer);
      stack->scope = Scope::kStack;
      moved.emplace_back(node.buffer, stack);
    });
    return replace_buffers(s, moved);
  }

  int64_t max_loads_, max_sum_loads_;
  int64_t copies_ = 1;  // copies of the statement that unrolled loops around it make
  Buffers sums_;        // that a store adds to
  Buffers to_stack_;    // registers that a rolled loop indexes
};

}  // namespace

Program roll_loops(Program program, const RollOptions& options) {
  for (Phase& phase : program.phases) {
    if (!phase.body) continue;
    const int64_t max_loads = phase.prepare ? options.max_prepare_loads : options.max_loads;
    phase.body = Pass(phase.body, max_loads, options.max_sum_loads).run(phase.body);
  }
  return program;
}

}  // namespace hone::ir
