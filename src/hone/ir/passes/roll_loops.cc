#include "hone/ir/passes/roll_loops.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "hone/ir/linear.h"
#include "hone/ir/loads.h"
#include "hone/ir/passes/store_nest.h"

namespace hone::ir {
namespace {

using Buffers = std::set<const Buffer*>;  // looked up only, never iterated

int64_t copies_of_body(const Stmt& s) {
  return is_unrolled(s) && is_const_int(s->extent) ? s->extent->int_value : 1;
}

// Of unknown values, in the code that the statement becomes.
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
  for (const Stmt& s : nest.around) {
    for (const Expr& e : {s->min, s->extent, s->condition}) {
      if (e) visit(e, f);
    }
  }
  for (const Expr& e : nest.store->indices) visit(e, f);
  visit(nest.store->value, f);
}

bool any_uses(const std::vector<Expr>& indices, const Var* var) {
  return std::any_of(indices.begin(), indices.end(), [&](const Expr& e) { return uses(e, var); });
}

void collect_sums(const Stmt& s, Buffers& sums) {
  if (s->kind == StmtKind::kStore && loads_from(s->value, s->buffer.get()))
    sums.insert(s->buffer.get());
  for (const Stmt& child : s->body) collect_sums(child, sums);
}

// The iterations stay in order, but what is chosen while code is made may not depend on them:
// places in registers, known values, extents.
bool may_roll_in_place(const Stmt& loop) {
  const Var* var = loop->var.get();
  const auto depends_on_loop = [&](const Expr& expr) {
    bool found = false;
    if (!expr) return found;
    visit(expr, [&](const Expr& e) {
      const bool fixed = e->op == Op::kLoad &&
                         (e->buffer->scope == Scope::kRegister || !e->buffer->values.empty());
      found = found || (fixed && any_uses(e->args, var));
    });
    return found;
  };
  const std::function<bool(const Stmt&)> may = [&](const Stmt& s) {
    for (const Expr& e : {s->min, s->extent, s->condition, s->value}) {
      if (depends_on_loop(e)) return false;
    }
    if (std::any_of(s->indices.begin(), s->indices.end(), depends_on_loop)) return false;
    if (s->kind == StmtKind::kStore && s->buffer->scope == Scope::kRegister &&
        any_uses(s->indices, var))
      return false;
    if (s->kind == StmtKind::kFor && uses(s->extent, var)) return false;
    return std::all_of(s->body.begin(), s->body.end(), may);
  };
  return is_const_int(loop->min) && is_const_int(loop->extent) && may(loop);
}

class Pass {
 public:
  Pass(const Stmt& phase, int64_t max_loads, int64_t max_sum_loads)
      : max_loads_(max_loads), max_sum_loads_(max_sum_loads) {
    collect_sums(phase, sums_);
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
    if (s->body.empty()) return s;
    const bool in_place =
        is_unrolled(s) && copies_ * loads_in(s) > max_sum_loads_ && may_roll_in_place(s);
    const int64_t outer_copies = copies_;
    if (!in_place) copies_ *= copies_of_body(s);
    std::vector<Stmt> body;
    for (const Stmt& child : s->body) body.push_back(roll(child));
    copies_ = outer_copies;
    if (!in_place) return with_body(*s, std::move(body));
    return make_for(s->var, s->min, s->extent, ForKind::kSerial, std::move(body));
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
  Stmt on_stack(const Stmt& s) {
    if (s->kind == StmtKind::kAlloc && to_stack_.contains(s->buffer.get())) {
      auto stack = std::make_shared<Buffer>(*s->buffer);
      stack->scope = Scope::kStack;
      moved_.emplace_back(s->buffer.get(), stack);
    }
    std::vector<Stmt> body;
    for (const Stmt& child : s->body) body.push_back(on_stack(child));
    const auto place = [&](const Expr& e) {
      return e ? rewrite(e,
                         [&](const Expr& node) -> Expr {
                           const BufferPtr other =
                               node->op == Op::kLoad ? moved(node->buffer) : nullptr;
                           return other ? load(other, node->args) : nullptr;
                         })
               : e;
    };
    std::vector<Expr> indices;
    for (const Expr& index : s->indices) indices.push_back(place(index));
    const BufferPtr other = moved(s->buffer);
    if (other && s->kind == StmtKind::kAlloc) return make_alloc(other, std::move(body));
    if (other && s->kind == StmtKind::kStore) return make_store(other, indices, place(s->value));
    if (other && s->kind == StmtKind::kPrefetch) return make_prefetch(other, indices, s->cache);
    if (s->kind == StmtKind::kExtern) {
      std::vector<BufferPtr> buffers;
      for (const BufferPtr& b : s->buffers) buffers.push_back(moved(b) ? moved(b) : b);
      return make_extern(s->name, std::move(buffers));
    }
    return with_exprs(*s, place(s->min), place(s->extent), place(s->condition), std::move(indices),
                      place(s->value), std::move(body));
  }
  BufferPtr moved(const BufferPtr& buffer) const {
    for (const auto& [from, to] : moved_) {
      if (from == buffer.get()) return to;
    }
    return nullptr;
  }

  int64_t max_loads_, max_sum_loads_;
  int64_t copies_ = 1;  // of the statement, by unrolled loops around it
  Buffers sums_;        // that a store adds to
  Buffers to_stack_;    // registers that a rolled loop indexes
  std::vector<std::pair<const Buffer*, BufferPtr>> moved_;
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
