// ir/visit.h - visits and rewrites statements, so that passes and analyses need no recursion of
// their own. Rewriting keeps the nodes in which nothing changes.
#pragma once

#include <algorithm>

#include "hone/ir/stmt.h"

namespace hone::ir {

// Calls f on each expression that the statement itself has; expressions in its body are left out.
template <typename F>
void for_each_expr(const StmtNode& s, const F& f) {
  for (const Expr* e : {&s.min, &s.extent, &s.condition, &s.value}) {
    if (*e) f(*e);
  }
  for (const Expr& index : s.indices) f(index);
  for (const Box& box : s.boxes) {
    for (const Expr& index : box.indices) f(index);
  }
}
template <typename F>
[[nodiscard]] bool any_expr(const StmtNode& s, const F& test) {
  bool found = false;
  for_each_expr(s, [&](const Expr& e) { found = found || test(e); });
  return found;
}

// Calls f on a statement and on each one below it, parents first.
template <typename F>
void for_each_stmt(const StmtNode& s, const F& f) {
  f(s);
  for (const Stmt& child : s.body) for_each_stmt(*child, f);
}
template <typename F>
[[nodiscard]] bool any_stmt(const StmtNode& s, const F& test) {
  return test(s) || std::any_of(s.body.begin(), s.body.end(),
                                [&](const Stmt& child) { return any_stmt(*child, test); });
}

// Returns the statement with f(child) in place of each statement of its body.
template <typename F>
[[nodiscard]] Stmt map_body(const Stmt& s, const F& f) {
  std::vector<Stmt> body;
  body.reserve(s->body.size());
  bool changed = false;
  for (const Stmt& child : s->body) {
    body.push_back(f(child));
    changed = changed || body.back() != child;
  }
  return changed ? with_body(*s, std::move(body)) : s;
}
// Rebuilds a statement bottom up: f gets each statement with its body already rewritten and returns
// its replacement.
template <typename F>
[[nodiscard]] Stmt rewrite_stmts(const Stmt& s, const F& f) {
  return f(map_body(s, [&](const Stmt& child) { return rewrite_stmts(child, f); }));
}

// Returns the statement with some buffers replaced, in what it loads, stores, prefetches, allocates
// and passes to functions.
using BufferMap = std::vector<std::pair<BufferPtr, BufferPtr>>;
[[nodiscard]] Stmt replace_buffers(const Stmt& s, const BufferMap& map);

// Returns the program with f(body) in place of the bodies of all phases, or (map_run_phases) of all
// but the phases that prepare constants.
template <typename F>
[[nodiscard]] Program map_all_phases(Program program, const F& f) {
  for (Phase& phase : program.phases) {
    if (phase.body) phase.body = f(phase.body);
  }
  return program;
}
template <typename F>
[[nodiscard]] Program map_run_phases(Program program, const F& f) {
  for (Phase& phase : program.phases) {
    if (phase.body && !phase.prepare) phase.body = f(phase.body);
  }
  return program;
}

}  // namespace hone::ir
