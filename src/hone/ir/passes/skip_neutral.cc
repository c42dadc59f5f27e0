#include "hone/ir/passes/skip_neutral.h"

#include <algorithm>
#include <cmath>

#include "hone/ir/linear.h"
#include "hone/ir/passes/hoist_guards.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// Combined with any value by the operation, it gives the value.
bool is_neutral(const Expr& e, Op op) {
  if (e->op != Op::kFloat) return false;
  switch (op) {
    case Op::kAdd: return e->float_value == 0;
    case Op::kMax: return std::isinf(e->float_value) && e->float_value < 0;
    case Op::kMin: return std::isinf(e->float_value) && e->float_value > 0;
    default: return false;
  }
}

class Pass {
 public:
  Stmt run(const Stmt& s) {
    if (s->kind == StmtKind::kStore) return stored(s);
    const bool vectorized = s->kind == StmtKind::kFor && s->for_kind == ForKind::kVectorized;
    if (vectorized) lanes_.push_back(s->var);
    const Stmt made = map_body(s, [&](const Stmt& child) { return run(child); });
    if (vectorized) lanes_.pop_back();
    const std::vector<Stmt>& body = made->body;
    // The guard of a tail holds back nothing but its own lanes: one condition, of which parts move.
    if (made != s && s->kind == StmtKind::kIf && body.size() == 1 &&
        body[0]->kind == StmtKind::kIf && !has_load(s->condition))
      return make_if(logical_and(s->condition, body[0]->condition), body[0]->body);
    return made;
  }

 private:
  [[nodiscard]] Stmt stored(const Stmt& store) const {
    const StmtNode& s = *store;
    const Expr& value = s.value;
    if (value->args.size() != 2 || s.buffer->scope != Scope::kRegister) return store;
    for (size_t i = 0; i < 2; ++i) {
      const Expr &own = value->args[i], &chosen = value->args[1 - i];
      const bool reduces = own->op == Op::kLoad && own->buffer == s.buffer &&
                           std::equal(own->args.begin(), own->args.end(), s.indices.begin(),
                                      [](const Expr& a, const Expr& b) { return equal(a, b); });
      if (!reduces || chosen->op != Op::kSelect || !is_neutral(chosen->args[2], value->op) ||
          !same_in_all_lanes(chosen->args[0]))
        continue;
      std::vector<Expr> args = value->args;
      args[1 - i] = chosen->args[1];
      return make_if(chosen->args[0],
                     {make_store(s.buffer, s.indices, make(value->op, std::move(args)))});
    }
    return store;
  }

  [[nodiscard]] bool same_in_all_lanes(const Expr& condition) const {
    return !has_load(condition) && std::none_of(lanes_.begin(), lanes_.end(), [&](const VarPtr& v) {
      return uses(condition, v.get());
    });
  }

  std::vector<VarPtr> lanes_;  // variables of the vectorized loops around
};

}  // namespace

Program skip_neutral(Program program) {
  return map_all_phases(std::move(program), [](const Stmt& s) {
    const Stmt made = Pass().run(s);
    return made == s ? s : hoist_guards(made);
  });
}

}  // namespace hone::ir
