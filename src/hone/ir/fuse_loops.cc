#include "hone/ir/fuse_loops.h"

#include <algorithm>
#include <optional>
#include <set>

#include "hone/ir/linear.h"

namespace hone::ir {
namespace {

struct Access {
  const Buffer* buffer;
  const std::vector<Expr>* indices;
  bool stores;
};
using Accesses = std::vector<Access>;

void add_loads(const Expr& e, Accesses& out) {
  if (!e) return;
  visit(e, [&](const Expr& node) {
    if (node->op == Op::kLoad) out.push_back({node->buffer.get(), &node->args, false});
  });
}

void add_accesses(const Stmt& s, Accesses& out) {
  for (const Expr& e : {s->min, s->extent, s->condition, s->value}) add_loads(e, out);
  for (const Expr& e : s->indices) add_loads(e, out);
  if (s->kind == StmtKind::kStore) out.push_back({s->buffer.get(), &s->indices, true});
  for (const Stmt& child : s->body) add_accesses(child, out);
}

Accesses accesses_of(const std::vector<Stmt>& statements) {
  Accesses out;
  for (const Stmt& s : statements) add_accesses(s, out);
  return out;
}

bool is_vector_loop(const Stmt& s) {
  return s->kind == StmtKind::kFor && s->for_kind == ForKind::kVectorized &&
         std::all_of(s->body.begin(), s->body.end(), [](const Stmt& child) {
           return child->kind == StmtKind::kStore && child->buffer->scope != Scope::kRegister;
         });
}

bool is_row_loop(const Stmt& s) {
  return s->kind == StmtKind::kFor && s->for_kind == ForKind::kSerial && !s->peel &&
         std::all_of(s->body.begin(), s->body.end(), [](const Stmt& child) {
           return child->kind == StmtKind::kStore || is_vector_loop(child);
         });
}

// Whether neither stores what the other one touches.
bool independent(const Stmt& a, const Stmt& b) {
  const Accesses first = accesses_of({a}), second = accesses_of({b});
  for (const Access& x : first) {
    for (const Access& y : second) {
      if (x.buffer == y.buffer && (x.stores || y.stores)) return false;
    }
  }
  return true;
}

// Iterations touch different elements of what both loops touch and one stores: there is an index
// in which all of these accesses have the variable and the same besides.
bool rows_apart(const Accesses& all, const Buffer* buffer, const VarPtr& var) {
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    std::optional<Linear> rest;
    const bool same = std::all_of(all.begin(), all.end(), [&](const Access& a) {
      if (a.buffer != buffer) return true;
      const Expr& index = (*a.indices)[d];
      if (has_load(index)) return false;
      const Linear form = linearize(index);
      const Linear besides = without(form, variable(var));
      if (form.coefficient(var) != 1 || depends(besides, var)) return false;
      if (!rest) rest = besides;
      return equal(*rest, besides);
    });
    if (same) return true;
  }
  return false;
}

// Variables of loops inside the two bodies: what they stand for differs between the loops.
void add_inner_variables(const std::vector<Stmt>& body, std::set<const Var*>& out) {
  for (const Stmt& s : body) {
    if (s->kind == StmtKind::kFor) out.insert(s->var.get());
    add_inner_variables(s->body, out);
  }
}

bool mentions_inner(const Access& a, const VarPtr& own, const std::set<const Var*>& inner) {
  return std::any_of(a.indices->begin(), a.indices->end(), [&](const Expr& index) {
    const Linear form = linearize(index);
    if (form.coefficient(own) == 0) return false;
    return std::any_of(form.terms.begin(), form.terms.end(), [&](const auto& term) {
      bool found = false;
      visit(term.first, [&](const Expr& node) {
        found |= node->op == Op::kVar && inner.contains(node->var.get());
      });
      return found;
    });
  });
}

// The widest element decides how many lanes a vectorized loop runs in.
int64_t widest(const std::vector<Stmt>& body) {
  int64_t bytes = 0;
  for (const Access& a : accesses_of(body))
    bytes = std::max<int64_t>(bytes, dtype_bytes(a.buffer->dtype));
  return bytes;
}

class Pass {
 public:
  Stmt run(const Stmt& s) const {
    if (s->body.empty()) return s;
    std::vector<Stmt> body;
    for (const Stmt& child : s->body) append(body, run(child));
    return with_body(*s, std::move(body));
  }

 private:
  // Adds a statement behind others, or into one of them that may run after those between.
  void append(std::vector<Stmt>& body, const Stmt& s) const {
    for (size_t i = body.size(); i-- > 0;) {
      const auto at = body.begin() + static_cast<std::ptrdiff_t>(i);
      const bool may_wait = std::all_of(
          at + 1, body.end(), [&](const Stmt& between) { return independent(*at, between); });
      const std::optional<Stmt> both = may_wait ? fused(*at, s) : std::nullopt;
      if (both) {
        body.erase(at);
        return body.push_back(*both);
      }
      if ((*at)->kind != StmtKind::kStore) break;
    }
    body.push_back(s);
  }

  std::optional<Stmt> fused(const Stmt& first, const Stmt& second) const {
    const bool rows = is_row_loop(first) && is_row_loop(second);
    if (!rows && !(is_vector_loop(first) && is_vector_loop(second))) return std::nullopt;
    if (!equal(first->min, second->min) || !equal(first->extent, second->extent) ||
        has_load(first->min) || has_load(first->extent))
      return std::nullopt;
    const VarMap rename = {{second->var, variable(first->var)}};
    std::vector<Stmt> rest;
    for (const Stmt& s : second->body) rest.push_back(substitute(s, rename));
    if (!rows && widest(first->body) != widest(rest)) return std::nullopt;
    if (!may_join(first->body, rest, first->var)) return std::nullopt;
    std::vector<Stmt> body = first->body;
    for (const Stmt& s : rest) append(body, s);
    return with_body(*first, std::move(body));
  }

  static bool may_join(const std::vector<Stmt>& first, const std::vector<Stmt>& second,
                       const VarPtr& var) {
    const Accesses before = accesses_of(first), behind = accesses_of(second);
    Accesses all = before;
    all.insert(all.end(), behind.begin(), behind.end());
    std::set<const Var*> inner;
    add_inner_variables(first, inner);
    add_inner_variables(second, inner);
    bool reads = false;
    std::set<const Buffer*> shared;
    for (const Access& a : before) {
      for (const Access& b : behind) {
        if (a.buffer != b.buffer || !(a.stores || b.stores)) continue;
        reads |= a.stores && !b.stores;
        shared.insert(a.buffer);
        if (mentions_inner(a, var, inner) || mentions_inner(b, var, inner)) return false;
      }
    }
    return reads && std::all_of(shared.begin(), shared.end(),
                                [&](const Buffer* buffer) { return rows_apart(all, buffer, var); });
  }
};

}  // namespace

Program fuse_loops(Program program) {
  for (Phase& phase : program.phases) {
    if (phase.body && !phase.prepare) phase.body = Pass().run(phase.body);
  }
  return program;
}

}  // namespace hone::ir
