#include "hone/ir/passes/fuse_loops.h"

#include <algorithm>
#include <optional>
#include <set>

#include "hone/ir/linear.h"
#include "hone/ir/passes/row_loops.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

bool is_row_loop(const Stmt& s) {
  return s->kind == StmtKind::kFor && !s->peel && is_row_body(s->body) &&
         (s->for_kind == ForKind::kSerial ||
          (s->for_kind == ForKind::kUnrolled && is_const_int(s->extent)));
}

// Unrolled rows, which overlap each other where each stage runs over all of them, stay so unless
// a sum takes what was just computed.
bool saves_loads(const std::vector<Stmt>& joined, const std::vector<Stmt>& first,
                 const std::vector<Stmt>& second) {
  const auto loops = [](const std::vector<Stmt>& body) {
    return std::count_if(body.begin(), body.end(), is_vector_loop);
  };
  return reduces_lanes(second) && loops(joined) < loops(first) + loops(second);
}

// Returns whether neither loop stores what the other one touches.
bool independent(const Stmt& a, const Stmt& b) {
  const RowAccesses first = accesses_of({a}), second = accesses_of({b});
  for (const RowAccess& x : first) {
    for (const RowAccess& y : second) {
      if (x.buffer == y.buffer && (x.stores || y.stores)) return false;
    }
  }
  return true;
}

// The widest element decides how many lanes a vectorized loop runs in.
int64_t widest(const std::vector<Stmt>& body) {
  int64_t bytes = 0;
  for (const RowAccess& a : accesses_of(body))
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
    const bool rows =
        is_row_loop(first) && is_row_loop(second) && first->for_kind == second->for_kind;
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
    if (first->for_kind == ForKind::kUnrolled && !saves_loads(body, first->body, rest))
      return std::nullopt;
    return with_body(*first, std::move(body));
  }

  static bool may_join(const std::vector<Stmt>& first, const std::vector<Stmt>& second,
                       const VarPtr& var) {
    const RowAccesses before = accesses_of(first), behind = accesses_of(second);
    RowAccesses all = before;
    all.insert(all.end(), behind.begin(), behind.end());
    std::set<const Var*> inner = inner_variables(first);
    inner.merge(inner_variables(second));
    bool reads = false;
    std::set<const Buffer*> shared;
    for (const RowAccess& a : before) {
      for (const RowAccess& b : behind) {
        if (a.buffer != b.buffer || !(a.stores || b.stores)) continue;
        reads |= a.stores && !b.stores;
        shared.insert(a.buffer);
      }
    }
    return reads && std::all_of(shared.begin(), shared.end(), [&](const Buffer* buffer) {
             return rows_apart(all, buffer, var, inner);
           });
  }
};

}  // namespace

Program fuse_loops(Program program) {
  return map_run_phases(std::move(program), [](const Stmt& s) { return Pass().run(s); });
}

}  // namespace hone::ir
