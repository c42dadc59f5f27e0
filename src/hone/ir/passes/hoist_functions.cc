#include "hone/ir/passes/hoist_functions.h"

#include <algorithm>
#include <set>

#include "hone/ir/linear.h"
#include "hone/ir/passes/tile_loops.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// Elements of a vectorized loop: eight of the longest vectors.
constexpr int64_t kMaxElements = 128;

bool takes_long(const Expr& e) {
  const bool kept = e->type == DType::kF32 || e->type == DType::kF64;  // not rounded by a store
  return kept && (e->op >= Op::kSqrt || e->op == Op::kPow || e->op == Op::kDiv);
}

// A loop around one vectorized loop of stores, which may be under a condition that all iterations
// share.
struct Nest {
  const StmtNode* vector = nullptr;
  Expr condition;            // null: none
  std::vector<Stmt> stores;  // empty: not such a nest
};

bool all_stores(const std::vector<Stmt>& body) {
  return std::all_of(body.begin(), body.end(), [](const Stmt& s) {
    return s->kind == StmtKind::kStore && s->buffer->scope != Scope::kRegister;
  });
}

Nest nest_of(const StmtNode& loop) {
  const bool outer = loop.kind == StmtKind::kFor && loop.for_kind == ForKind::kSerial &&
                     is_const_int(loop.extent) && loop.extent->int_value > 1;
  if (!outer || loop.body.size() != 1) return {};
  const StmtNode& vector = *loop.body[0];
  const bool inner = vector.kind == StmtKind::kFor && vector.for_kind == ForKind::kVectorized &&
                     counts_from_zero(vector) && vector.extent->int_value <= kMaxElements;
  if (!inner) return {};
  Nest nest{&vector, nullptr, vector.body};
  if (vector.body.size() == 1 && vector.body[0]->kind == StmtKind::kIf) {
    nest.condition = vector.body[0]->condition;
    nest.stores = vector.body[0]->body;
    if (uses(nest.condition, loop.var.get()) || has_load(nest.condition)) return {};
  }
  return all_stores(nest.stores) ? nest : Nest();
}

class Shared {
 public:
  Shared(const StmtNode& loop, const Nest& nest) : loop_(loop), vector_(*nest.vector) {
    for (const Stmt& s : nest.stores) stored_.insert(s->buffer.get());
    for (const Stmt& s : nest.stores) collect(s->value);
  }

  std::vector<Expr> found;

 private:
  // The largest such parts; not below a select, which evaluates only what it chooses.
  void collect(const Expr& e) {
    if (e->op == Op::kSelect || e->op == Op::kLoad) return;
    if (takes_long(e) && is_shared(e)) {
      const bool known = std::any_of(found.begin(), found.end(),
                                     [&](const Expr& other) { return equal(other, e); });
      if (!known) found.push_back(e);
      return;
    }
    for (const Expr& arg : e->args) collect(arg);
  }

  // Differs between lanes, so that no scalar will do, and not between iterations.
  [[nodiscard]] bool is_shared(const Expr& e) const {
    bool shared = uses(e, vector_.var.get()) && !uses(e, loop_.var.get());
    visit(e, [&](const Expr& node) {
      if (node->op == Op::kLoad)
        shared = shared && !stored_.contains(node->buffer.get()) &&
                 node->buffer->scope != Scope::kRegister;
    });
    return shared;
  }

  const StmtNode& loop_;
  const StmtNode& vector_;
  std::set<const Buffer*> stored_;  // looked up only
};

std::vector<Stmt> under(const Expr& condition, std::vector<Stmt> body) {
  if (!condition) return body;
  return {make_if(condition, std::move(body))};
}

Stmt hoisted(const Stmt& loop) {
  const Nest nest = nest_of(*loop);
  if (nest.stores.empty()) return loop;
  const std::vector<Expr> shared = Shared(*loop, nest).found;
  if (shared.empty()) return loop;
  const StmtNode& vector = *nest.vector;
  const VarPtr ahead = make_var(vector.var->name);
  const VarMap rename = {{vector.var, variable(ahead)}};
  std::vector<BufferPtr> buffers;
  std::vector<Stmt> first;
  for (const Expr& e : shared) {
    buffers.push_back(make_buffer("shared", e->type, {vector.extent->int_value}, Scope::kStack));
    first.push_back(make_store(buffers.back(), {variable(ahead)}, substitute(e, rename)));
  }
  std::vector<Stmt> rest;
  for (const Stmt& s : nest.stores) {
    rest.push_back(rewrite_exprs(s, [&](const Expr& e) -> Expr {
      for (size_t i = 0; i < shared.size(); ++i) {
        if (equal(e, shared[i])) return load(buffers[i], {variable(vector.var)});
      }
      return nullptr;
    }));
  }
  const Expr condition = nest.condition ? substitute(nest.condition, rename) : nullptr;
  const Stmt before = make_for(ahead, vector.min, vector.extent, vector.for_kind,
                               under(condition, std::move(first)));
  const Stmt after = with_body(*loop, {with_body(vector, under(nest.condition, std::move(rest)))});
  Stmt both = make_block({before, after});
  for (const BufferPtr& buffer : buffers) both = make_alloc(buffer, {both});
  return both;
}

}  // namespace

Program hoist_functions(Program program) {
  return map_run_phases(std::move(program),
                        [](const Stmt& s) { return rewrite_stmts(s, hoisted); });
}

}  // namespace hone::ir
