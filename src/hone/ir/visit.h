// ir/visit.h - statements visited and rewritten, so that passes and analyses need no recursion of
// their own. What is rewritten keeps the nodes in which nothing changes.
#pragma once

#include <algorithm>

#include "hone/ir/stmt.h"

namespace hone::ir {

// Calls f on each expression that the statement itself has; those in its body are not among them.
template <typename F>
void for_each_expr(const StmtNode& s, const F& f) {
  for (const Expr* e : {&s.min, &s.extent, &s.condition, &s.value}) {
    if (*e) f(*e);
  }
  for (const Expr& index : s.indices) f(index);
}
template <typename F>
[[nodiscard]] bool any_expr(const StmtNode& s, const F& test) {
  bool found = false;
  for_each_expr(s, [&](const Expr& e) { found = found || test(e); });
  return found;
}

// Calls f on a statement and on each below it, parents first.
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

// The statement with f(child) in place of each statement of its body.
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
// what stands in its place.
template <typename F>
[[nodiscard]] Stmt rewrite_stmts(const Stmt& s, const F& f) {
  return f(map_body(s, [&](const Stmt& child) { return rewrite_stmts(child, f); }));
}

// The statement with other buffers in place of some: what it loads, stores, prefetches, allocates
// and gives to functions.
using BufferMap = std::vector<std::pair<BufferPtr, BufferPtr>>;
[[nodiscard]] Stmt replace_buffers(const Stmt& s, const BufferMap& map);

// The program with f(body) in place of each phase's body: of all phases, or of those that run with
// the model, which is to say of all but the phases that prepare constants.
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
