#include "hone/ir/passes/row_loops.h"

#include <algorithm>
#include <optional>

#include "hone/ir/linear.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

void add_accesses(const StmtNode& s, RowAccesses& out) {
  for_each_expr(s, [&](const Expr& e) {
    visit(e, [&](const Expr& node) {
      if (node->op == Op::kLoad) out.push_back({node->buffer.get(), &node->args, false});
    });
  });
  if (s.kind == StmtKind::kStore) out.push_back({s.buffer.get(), &s.indices, true});
}

bool uses_any(const Expr& e, const std::set<const Var*>& variables) {
  bool found = false;
  visit(e, [&](const Expr& node) {
    found |= node->op == Op::kVar && variables.contains(node->var.get());
  });
  return found;
}

}  // namespace

RowAccesses accesses_of(const std::vector<Stmt>& statements) {
  RowAccesses out;
  for (const Stmt& s : statements)
    for_each_stmt(*s, [&](const StmtNode& node) { add_accesses(node, out); });
  return out;
}

bool is_vector_loop(const Stmt& s) {
  return s->kind == StmtKind::kFor && s->for_kind == ForKind::kVectorized &&
         std::all_of(s->body.begin(), s->body.end(), [](const Stmt& child) {
           return child->kind == StmtKind::kStore && child->buffer->scope != Scope::kRegister;
         });
}

bool is_row_body(const std::vector<Stmt>& body) {
  return std::all_of(body.begin(), body.end(), [](const Stmt& child) {
    return child->kind == StmtKind::kStore || is_vector_loop(child);
  });
}

bool reduces_lanes(const std::vector<Stmt>& body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt& loop) {
    if (!is_vector_loop(loop)) return false;
    return std::any_of(loop->body.begin(), loop->body.end(), [&](const Stmt& store) {
      return std::none_of(store->indices.begin(), store->indices.end(),
                          [&](const Expr& index) { return uses(index, loop->var.get()); });
    });
  });
}

std::set<const Var*> inner_variables(const std::vector<Stmt>& body) {
  std::set<const Var*> variables;
  for (const Stmt& s : body) {
    for_each_stmt(*s, [&](const StmtNode& node) {
      if (node.kind == StmtKind::kFor) variables.insert(node.var.get());
    });
  }
  return variables;
}

bool rows_apart(const RowAccesses& all, const Buffer* buffer, const VarPtr& var,
                const std::set<const Var*>& inner) {
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    std::optional<Linear> rest;
    const bool same = std::all_of(all.begin(), all.end(), [&](const RowAccess& a) {
      if (a.buffer != buffer) return true;
      const Expr& index = (*a.indices)[d];
      if (has_load(index)) return false;
      const Linear form = linearize(index);
      const Linear besides = without(form, variable(var));
      if (form.coefficient(var) != 1 || depends(besides, var) || uses_any(index, inner))
        return false;
      if (!rest) rest = besides;
      return equal(*rest, besides);
    });
    if (same) return true;
  }
  return false;
}

}  // namespace hone::ir
