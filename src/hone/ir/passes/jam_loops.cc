#include "hone/ir/passes/jam_loops.h"

#include <algorithm>

#include "hone/ir/linear.h"
#include "hone/ir/passes/fuse_loops.h"
#include "hone/ir/passes/row_loops.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

constexpr int64_t kMostRows = 8;
// Elements of a row, less: a softmax of four rows of 61 takes half the time side by side, of two
// rows of 128 the same (docs/studies/other_operators.md).
constexpr int64_t kLongRow = 128;

bool is_rows(const StmtNode& s) {
  return s.kind == StmtKind::kFor && s.for_kind == ForKind::kUnrolled && is_const_int(s.min) &&
         is_const_int(s.extent) && s.extent->int_value <= kMostRows && is_row_body(s.body);
}

bool has_functions(const std::vector<Stmt>& body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt& loop) {
    return std::any_of(loop->body.begin(), loop->body.end(), [](const Stmt& store) {
      bool found = false;
      visit(store->value, [&](const Expr& e) { found |= e->op >= Op::kExp; });
      return found;
    });
  });
}

// Rows touch different elements of what they store, and their loops are equally long, and short.
bool may_jam(const Stmt& rows) {
  for (const Stmt& s : rows->body) {
    if (s->kind != StmtKind::kFor) continue;
    if (!is_const_int(s->min) || !is_const_int(s->extent) || s->extent->int_value >= kLongRow)
      return false;
  }
  const RowAccesses all = accesses_of(rows->body);
  const std::set<const Var*> inner = inner_variables(rows->body);
  return std::all_of(all.begin(), all.end(), [&](const RowAccess& access) {
    return !access.stores || rows_apart(all, access.buffer, rows->var, inner);
  });
}

void append_jammed(const Stmt& rows, std::vector<Stmt>& out) {
  for (const Stmt& s : rows->body) {
    std::vector<Stmt> side_by_side;
    for (int64_t i = 0; i < rows->extent->int_value; ++i) {
      const VarMap row = {{rows->var, constant(rows->min->int_value + i)}};
      if (s->kind != StmtKind::kFor) side_by_side.push_back(substitute(s, row));
      for (const Stmt& store : s->body) side_by_side.push_back(substitute(store, row));
    }
    if (s->kind == StmtKind::kFor) side_by_side = {with_body(*s, std::move(side_by_side))};
    out.insert(out.end(), side_by_side.begin(), side_by_side.end());
  }
}

bool has_rows(const Stmt& s) {
  return any_stmt(*s,
                  [](const StmtNode& node) { return is_rows(node) && reduces_lanes(node.body); });
}

Stmt jammed(const Stmt& s) {
  if (s->body.empty()) return s;
  bool reduces = false, functions = false;
  for (const Stmt& child : s->body) {
    if (!is_rows(*child)) continue;
    reduces |= reduces_lanes(child->body);
    functions |= has_functions(child->body);
  }
  std::vector<Stmt> body;
  for (const Stmt& child : s->body) {
    if (reduces && functions && is_rows(*child) && may_jam(child)) {
      append_jammed(child, body);
    } else {
      body.push_back(jammed(child));
    }
  }
  return with_body(*s, std::move(body));
}

}  // namespace

Program jam_loops(Program program) {
  const bool any = std::any_of(
      program.phases.begin(), program.phases.end(),
      [](const Phase& phase) { return phase.body && !phase.prepare && has_rows(phase.body); });
  if (!any) return program;
  program = fuse_loops(std::move(program));
  return fuse_loops(map_run_phases(std::move(program), jammed));
}

}  // namespace hone::ir
